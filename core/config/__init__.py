"""The configuration of a run, frozen and validated, and everything that follows from a config alone.

May import: catalogue, errors, events, parameters, quantities; never torch. The records of a run belong to artifacts,
its execution to training.
"""

from core.config.run import (
    LARGEST_SEED,
    MAX_STEPS,
    RATE,
    BranchConfig,
    Change,
    KnobTurn,
    PhaseConfig,
    Precision,
    RunConfig,
    check_turn,
    parse_config,
    peak_rates,
    phase_steps,
)
from core.config.sections import (
    FILE_TASK,
    OWN_TASK,
    TRAIN_POINTS_MAX,
    CheckpointConfig,
    EncoderConfig,
    OptimiserConfig,
    ProbeConfig,
    ReadingConfig,
    TaskConfig,
    TrainableConfig,
)
