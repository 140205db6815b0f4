"""Eight leapfrog steps (kick, drift, kick) of 256 bodies, in double precision."""

import numpy as np

STEPS = 8
PUSH = np.dtype([("seconds", "<f4"), ("softening_squared", "<f4")])


def inputs() -> dict[str, np.ndarray]:
    """Make a flat rotating disc with a heavy body in the middle."""
    i = np.arange(256)
    radius = 0.2 + (i * 89 % 256) / 200
    angle = i * 2.399963  # the golden angle spreads the bodies evenly
    bodies = np.column_stack(
        [radius * np.cos(angle), radius * np.sin(angle), (i * 37 % 256 - 128) / 2560, np.full(256, 1 / 1024)]
    )
    speed = np.sqrt((1 + 0.25 * (radius / 1.5) ** 2) / radius)
    velocities = np.column_stack([-speed * np.sin(angle), speed * np.cos(angle), np.zeros((256, 2))])
    bodies[0] = (0, 0, 0, 1)
    velocities[0] = 0
    return {
        "bodies": bodies.astype(np.float32),
        "velocities": velocities.astype(np.float32),
        "half_step": np.array([(1 / 128, 1 / 1024)], PUSH).view(np.uint8),
        "step": np.array([(1 / 64, 1 / 1024)], PUSH).view(np.uint8),
    }


def acceleration(positions: np.ndarray, masses: np.ndarray, softening_squared: float) -> np.ndarray:
    apart = positions[None, :, :] - positions[:, None, :]
    squared = (apart**2).sum(axis=2) + softening_squared
    total: np.ndarray = (apart * (masses[None, :] * squared**-1.5)[:, :, None]).sum(axis=1)
    return total


def energy(positions: np.ndarray, velocities: np.ndarray, masses: np.ndarray, softening_squared: float) -> float:
    apart = positions[None, :, :] - positions[:, None, :]
    distance = np.sqrt((apart**2).sum(axis=2) + softening_squared)
    pairs = np.triu(masses[None, :] * masses[:, None] / distance, 1)
    return float((masses * (velocities**2).sum(axis=1)).sum() / 2 - pairs.sum())


def expected(
    bodies: np.ndarray, velocities: np.ndarray, half_step: np.ndarray, step: np.ndarray
) -> dict[str, np.ndarray]:
    bodies, velocities = bodies.astype(np.float64), velocities.astype(np.float64)
    positions, masses, speeds = bodies[:, :3], bodies[:, 3], velocities[:, :3]  # views
    seconds, softening = (float(value) for value in step.view(PUSH)[0])
    assert half_step.view(PUSH)["seconds"][0] == seconds / 2
    before = energy(positions, speeds, masses, softening)
    for _ in range(STEPS):
        speeds += acceleration(positions, masses, softening) * (seconds / 2)
        positions += speeds * seconds
        speeds += acceleration(positions, masses, softening) * (seconds / 2)
    after = energy(positions, speeds, masses, softening)
    assert abs(after - before) < 1e-4 * abs(before), "the integrator keeps the energy"
    return {"bodies": bodies.astype(np.float32), "velocities": velocities.astype(np.float32)}
