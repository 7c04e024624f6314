"""What each signal counts. The figures were fitted on half of a set of real issues, and checked on the other half."""

from __future__ import annotations

from collections.abc import Mapping

from pawl.context.ranking.signals import Signal

WEIGHTS: Mapping[Signal, float] = {
    Signal.PIECE: 3.0,
    Signal.FILE: 3.0,
    Signal.TITLE: 0.5,
    Signal.PATH: 0.8,
    Signal.DEFINITION: 1.0,
    Signal.TITLE_DEFINITION: 0.8,
    Signal.DOTTED: 1.0,
    Signal.IMPORT: 0.3,
    Signal.MENTION: 3.0,
    Signal.FRAME: 2.0,
    Signal.MESSAGE: 1.5,
    Signal.NEIGHBOUR: 0.8,
    Signal.CALLED: 0.8,
    Signal.OFTEN: 1.0,
    Signal.LATELY: 0.3,
    Signal.ALIKE: 1.0,
    Signal.TOGETHER: 0.4,
    Signal.SUSPICION: 4.0,
    Signal.PROSE: -2.0,
    Signal.TEST: -1.5,
    Signal.PACKAGE: -0.5,
}
