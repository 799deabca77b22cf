"""The judge: the pure decision whether a summarizer's output may enter memory.

Nothing enters memory unjudged (law 7). No model is asked: every rule can be read, costs
milliseconds and gives the same answer twice.
"""

from policies.judge.refusal import declines_request, is_refusal
from policies.judge.rulings import judge_gist, judge_summary
from policies.judge.verdict import Verdict

__all__ = ["Verdict", "declines_request", "is_refusal", "judge_gist", "judge_summary"]
