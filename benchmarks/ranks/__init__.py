"""A simulator of many ranks whose truth is known, and how well stepscope reads what it makes.

Two models make a job from real recordings of one rank: `stretched` lengthens recorded steps where the account says why, `discrete`
runs hosts and devices as a discrete-event simulation. Both take the same case and give the same `Job`, which one scorer reads.
`physics` needs no recordings: it simulates hybrid-parallel jobs, writes them as files, and has a scorer of its own.
"""
