# Sourced by the scripts in tools/ once they know $root, the checkout. POSIX sh: a bare machine has nothing else.
#
#   set_up run    what a run needs: .venv with the package, and a Vulkan loader, driver and GLSL compiler on the machine
#   set_up test   that, and what the tests need
#
# Everything that takes longer than a glance is done in Python (tools/bootstrap/*.py); here is only what must come before:
# seeing that nothing is to be done, which takes about 3 ms, and finding an interpreter.
#
# SCENARIO_RUNNER_PYTHON names the interpreter to make .venv with (delete .venv to change your mind).

venv=$root/.venv
others='python3.15 python3.14 python3.13 python3.12 python3.11' # where python3 is unsuitable
unset PYTHONHOME PYTHONPATH # they would lead the environment's interpreter to other people's packages

say() {
    printf 'scenario-runner: %s\n' "$*" >&2
}

set_up() {
    errors=$root/scenario_runner/errors
    key=$(cat "$root/pyproject.toml" "$root"/tools/bootstrap/*.py \
        "$errors/installation.py" "$errors/system_packages.toml" | cksum)
    if ! is_current "$venv/ready-$1"; then
        python=$(find_python) || python=$(install_python "$1") || exit 1
        (cd -- "$root" && exec "$python" -s -m tools.bootstrap "$1" "$key") </dev/null || exit $?
    fi
}

# A stamp holds the key it was made with, the checkout it was made in, and every path that has to be there still.
is_current() {
    [ -f "$1" ] || return 1
    {
        IFS= read -r stamp_key && [ "$stamp_key" = "$key" ] || return 1
        IFS= read -r stamp_root && [ "$stamp_root" = "$root" ] || return 1
        while IFS= read -r path; do
            [ -e "$path" ] || return 1
        done
    } <"$1"
}

# Print the first interpreter that is a CPython we support and can make environments, or else one that at least fits.
# Asking each is the only way: a pyenv shim exists for versions that are not switched on, and fails when it is run.
find_python() {
    if [ -n "${SCENARIO_RUNNER_PYTHON:-}" ]; then
        fits "$SCENARIO_RUNNER_PYTHON" && printf '%s\n' "$SCENARIO_RUNNER_PYTHON"
        return
    fi
    without_venv=
    for candidate in python3 $others \
        "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/3.1[1-9].*/bin/python3 /usr/bin/python3 /usr/local/bin/python3; do
        fits "$candidate" || continue
        if "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1 </dev/null; then
            printf '%s\n' "$candidate"
            return 0
        fi
        : "${without_venv:=$candidate}"
    done
    [ -n "$without_venv" ] && printf '%s\n' "$without_venv"
}

fits() {
    command -v -- "$1" >/dev/null 2>&1 && "$1" -c '
import sys
sys.exit(sys.implementation.name != "cpython" or sys.version_info < (3, 11))' >/dev/null 2>&1 </dev/null
}

# No interpreter: take the system's where we may, else say what to do. Prints the interpreter.
# Without Python nothing can look at what else is missing for $1, `run` or `test`: Debian's command names all of it, so
# that it is typed once. A test keeps the names equal to those in scenario_runner/errors/system_packages.toml.
install_python() {
    if [ -n "${SCENARIO_RUNNER_PYTHON:-}" ]; then
        say "SCENARIO_RUNNER_PYTHON=$SCENARIO_RUNNER_PYTHON is not a working CPython 3.11 or later: correct or unset it"
        return 1
    fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing Python from the system's packages"
        log=$(apt-get update -q 2>&1 </dev/null) || true
        for python in python3 $others; do # the system's own may be older than what we support
            log=$(DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
                "$python" "$python-venv" 2>&1 </dev/null) || continue
            find_python && return 0
        done
        printf '%s\n' "$log" | tail -n 5 >&2
    fi
    say "no working CPython 3.11 or later was found. Install one and run this again:"
    packages="python3 python3-venv libvulkan1 mesa-vulkan-drivers glslang-tools glslc spirv-tools"
    [ "$1" = run ] || packages="$packages vulkan-tools gcc libc6-dev vulkan-validationlayers"
    say "  Debian, Ubuntu   sudo apt-get update && sudo apt-get install $packages"
    say "  Fedora           sudo dnf install python3"
    say "  macOS            brew install python"
    say "  or name one:     SCENARIO_RUNNER_PYTHON=/path/to/python3"
    return 1
}
