float horner(float x) {
    return (C2 * x + C1) * x + C0;
}
