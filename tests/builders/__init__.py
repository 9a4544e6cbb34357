"""Makes the inputs of tests; one way for each thing.

Traces as tables: `tables` (text, or rows that a test computes), `inline` (with its account), `cases` (for rules), `gpu_trace`,
`traces` (a row in every table), `graphs` (a CUDA graph and its capture).
Files: `documents` (events and documents of Kineto and Chrome), `kineto_steps` (good steps to add a defect to), `files` (writes and reads
them), `ranks` and `jobs` (several ranks), `hostile` (names that mean harm), `damage` (to be cut), `protobuf`, `tf_wire` and
`xspace_bytes` (messages of TensorFlow and JAX).
Results: `reports`, `jobs.rank_samples`. `recordings` lists the real profiles among the fixtures.
"""
