"""Planning without a GPU: frames, operations, resources with sizes and uses, requirements."""
