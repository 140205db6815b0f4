#!/bin/sh
# Runs the demo suite and writes FOLDER/report.html (default: suite_demo_results). From anywhere; some seconds.
set -eu
folder=$(mkdir -p "${1:-suite_demo_results}" && CDPATH='' cd "${1:-suite_demo_results}" && pwd)
cd "$(dirname "$0")/../.."
demo=scenarios/suite_demo
run=${SCENARIO_RUNNER:-tools/run}

# Unexpected failures end these with 1, which is what the demo is about.
$run test $demo --include-tests 'suite_demo/(?!flake)' --results "$folder/suite" \
    --baseline $demo/baseline.csv --skips $demo/skips.txt --flakes $demo/flakes.txt || [ $? = 1 ]
$run test $demo/flake.json --repeat 60 --retries 60 --results "$folder/flake"
$run report "$folder/suite" "$folder/flake" --html "$folder/report.html" || [ $? = 1 ]
