"""What each signal counts. The figures were fitted on half of a set of real issues, and checked on the other half."""

from __future__ import annotations

from collections.abc import Mapping

from pawl.context.ranking.signals import Signal

WEIGHTS: Mapping[Signal, float] = {
    Signal.PIECE: 1.6,
    Signal.PIECE_PLACE: 1.1,
    Signal.FILE: 0.7,
    Signal.COVER: 0.8,
    Signal.RARE: 0.45,
    Signal.PATH: 0.6,
    Signal.STEM: 0.6,
    Signal.DEFINITION: 0.9,
    Signal.DOTTED: 0.3,
    Signal.MENTION: 2.0,
    Signal.FRAME: 1.6,
    Signal.MESSAGE: 0.8,
    Signal.NEIGHBOUR: 0.4,
    Signal.CALLED: 0.5,
    Signal.FOLDER: 0.8,
    Signal.TESTED: 0.7,
    Signal.LATELY: 0.15,
    Signal.ALIKE: 0.4,
    Signal.TOGETHER: 0.3,
    Signal.SUSPICION: 4.0,
    Signal.PROSE: -2.0,
    Signal.TEST: -1.5,
    Signal.ASIDE: -1.4,
}
