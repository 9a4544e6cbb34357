"""Ten questions that an assistant is asked about a profile, answered from tool results alone: python -m benchmarks.assistant"""
