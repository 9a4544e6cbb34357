"""Work of the device that the result does not need."""

from __future__ import annotations

from stepscope.registers.entry import policy

DENSE_ROWS_LEAST = policy(
    "DENSE_ROWS_LEAST",
    4096,
    unit="rows of a square matrix",
    why="that no step trains: below that a dense product costs little, and layers have such weights",
)
DENSE_ROWS_LEAST_ON_HOST = policy(
    "DENSE_ROWS_LEAST_ON_HOST",
    1024,
    unit="rows of a square matrix, on a CPU",
    why="of which the capture counted the zeros",
)
DENSE_TIMES_COLUMNS = policy(
    "DENSE_TIMES_COLUMNS",
    8,
    unit="× the columns of the other matrix",
    why="graphs have many more nodes than features",
)
NEIGHBOURS_LEAST = policy(
    "NEIGHBOURS_LEAST",
    8,
    unit="entries of a row that are not zero",
    why="about the edges of a node in citations, molecules and meshes",
)
NEIGHBOURS_MOST = policy(
    "NEIGHBOURS_MOST",
    150,
    unit="entries of a row that are not zero",
    why="about the edges of a node in social and retail graphs; jobs of blind trials needed what 8, 66 and 143 take, the last with 13 edges a node that were gathered and added one by one",
)
MOSTLY_ZEROS = policy(
    "MOSTLY_ZEROS",
    0.1,
    unit="share of entries that are not zero",
    why="with more, no sparse product on a GPU is faster than a dense one; most stop at one in a hundred",
)
UNSURE_ZEROS = policy(
    "UNSURE_ZEROS",
    0.7,
    unit="certainty",
    why="a profile has no values: the matrix may be full after all",
)
SMALL_RESULT = policy(
    "SMALL_RESULT",
    0.1,
    unit="share of the longest computation on a large result",
    why="what takes less may work on what that left, such as the best of ten classes or more",
)
SMALL_RESULT_AFTERWARDS = policy(
    "SMALL_RESULT_AFTERWARDS",
    0.5,
    unit="share of the longest computation on a large result",
    why="what comes after it works on the same data only if it takes about as long: a count takes a few times as long per element as a reduction that leaves a tenth or less",
)
ONE_HOT_CLASSES_LEAST = policy(
    "ONE_HOT_CLASSES_LEAST",
    256,
    unit="classes",
    why="with fewer the product costs little more than the lookup",
)
ONE_HOT_READ_LEAST = policy(
    "ONE_HOT_READ_LEAST",
    0.2,
    unit="× the time that makes the matrix",
    why="that a product with it takes at least, since it reads all of it; without shapes, a shorter one reads something else",
)
ONE_HOT_TIMES_NEXT = policy(
    "ONE_HOT_TIMES_NEXT",
    3,
    unit="× the op that comes after the product",
    why="that the matrix and its product take at least; without shapes, this shows how much wider than the result the matrix is: with some tens of classes, to make it takes about as long as what follows",
)
LOOKED_UP_LEAST = policy(
    "LOOKED_UP_LEAST",
    0.02,
    unit="share of the time",
    why="that a lookup needs of the product with a one-hot matrix at least",
)
LOOKED_UP_MOST = policy(
    "LOOKED_UP_MOST",
    0.15,
    unit="share of the time",
    why="that it needs at most, with the gradient that adds rows up; not measured yet",
)
WITHOUT_MASK_LEAST = policy(
    "WITHOUT_MASK_LEAST",
    0.25,
    unit="share of the time",
    why="of attention that is left without its mask at least: half of the work, in kernels with a speed-up of up to 2×",
)
WITHOUT_MASK_MOST = policy(
    "WITHOUT_MASK_MOST",
    0.6,
    unit="share of the time",
    why="that is left at most: half of the work, at the ends of rows not quite; not measured yet",
)
NOT_PADDING_LEAST = policy(
    "NOT_PADDING_LEAST",
    0.25,
    unit="share of the time",
    why="that is left without padding at least: how far texts and utterances are below the chosen length no profile shows; four of six padded jobs of blind trials gained more than the middle of 0.3 to 0.8",
)
NOT_PADDING_MOST = policy(
    "NOT_PADDING_MOST",
    0.8,
    unit="share of the time",
    why="that is left at most: even a batch of random samples has one of four fifths of that length",
)
POSITIONS_LEAST = policy(
    "POSITIONS_LEAST",
    32,
    unit="positions",
    why="of sequences whose padding is looked at: what a capture counts, and longer than the fields of a table",
)
BUCKETS_MOST = policy(
    "BUCKETS_MOST",
    1.2,
    unit="times the longest sample of a batch",
    why="that batches have at most which are padded to their longest sample: most fixes round it up to a multiple of 8 to 64, which is a fifth of 150 positions",
)
COMPILED_BUCKETS_LEAST = policy(
    "COMPILED_BUCKETS_LEAST",
    0.75,
    unit="× the next power of two from the longest sample of a batch",
    why="that batches have at least where each length is compiled: buckets are 64, 128, 256 and so on, and finer ones have 96 or 192 between them",
)
COMPILED_BUCKETS_MOST = policy(
    "COMPILED_BUCKETS_MOST",
    1.2,
    unit="× the next power of two from the longest sample of a batch",
    why="the same at most, in the mean of all batches: a few have a longer sample than the others, and need the next bucket; a job of a blind trial had 128 for 71, and 512 for one batch in 128",
)
LONGEST_OF_BATCH_MOST = policy(
    "LONGEST_OF_BATCH_MOST",
    0.75,
    unit="share of the positions",
    why="that the longest sample of a batch has where padding to it is the fix: beyond that batches have to be sorted by length, which leaves the mean",
)
SORTED_MOST = policy(
    "SORTED_MOST",
    1.25,
    unit="times the mean length of samples",
    why="that batches have at most which are made of samples of similar length: samplers sort within some fifty batches, so that the longest sample of a batch is a little above the mean one",
)
SORTED_TOGETHER_LEAST = policy(
    "SORTED_TOGETHER_LEAST",
    16,
    unit="batches",
    why="whose samples a sampler sorts together at least, where their lengths were counted: those of transformers and fairseq take fifty or the whole set",
)
SORTED_TOGETHER_MOST = policy(
    "SORTED_TOGETHER_MOST",
    128,
    unit="batches",
    why="that are sorted together at most: more leave hardly less padding",
)
SORTED_MORE_MOST = policy(
    "SORTED_MORE_MOST",
    1.5,
    unit="× the batches of a step",
    why="that are sorted together at most where a step has a list of texts and makes several batches of it: the next lists come later, unless there is a corpus",
)
SORTED_SLOWER_MOST = policy(
    "SORTED_SLOWER_MOST",
    1.1,
    unit="× the time of the positions that are left",
    why="at most, where a step sorts its own texts: its shortest batches do not fill a device, and the longest stay as they are",
)
SORTED_MULTIPLE_MOST = policy(
    "SORTED_MULTIPLE_MOST",
    128,
    unit="positions",
    why="to which batches are rounded up, if all recorded lengths are multiples of it: a larger common factor says nothing of how they are rounded",
)
LOOP_OF_BATCHES_LEAST = policy(
    "LOOP_OF_BATCHES_LEAST",
    4,
    unit="batches in a step",
    why="that are a list of texts in parts: two or three are the two sides of a translation, or a query with a passage that fits and one that does not, whose order is that of their partners",
)
PADDING_LEFT_MOST = policy(
    "PADDING_LEFT_MOST",
    0.75,
    unit="share of the positions",
    why="that are left without padding, in the middle: where batches are counted to be fuller, shorter ones are not worth their sorting",
)
STRIDES_MOST = policy(
    "STRIDES_MOST",
    8,
    unit="times",
    why="that convolutions in front of the layers shorten a sequence: those of speech do so 2 to 8 times",
)
UNSURE_PADDING = policy(
    "UNSURE_PADDING",
    0.9,
    unit="certainty",
    why="of ten recorded jobs with a mask per sample and one length, nine were padded; how much is padding a profile does not show",
)
MORE_OPS_ALIKE = policy(
    "MORE_OPS_ALIKE",
    2,
    unit="times",
    why="that runs over a growing sequence gain more or fewer ops than most of them: 12 to 16 for each character in a loop of which a few runs gained 36 to 91, when TensorFlow began to record short ops",
)
WHOLE_TABLE_LEAST = policy(
    "WHOLE_TABLE_LEAST",
    5,
    unit="times the longest gather",
    why="that an op on a whole table takes: a gather of all rows takes about as long as it, and of a tenth a tenth; jobs that normalise tables of 60,000 and 120,000 rows before they gather 512 had 60 to 200 times",
)
CALLS_DEEPEST = policy(
    "CALLS_DEEPEST",
    8,
    unit="calls inside each other",
    why="that are followed in a compiled program: a damaged one may call itself",
)
CALLS_MOST = policy(
    "CALLS_MOST",
    20_000,
    unit="calls",
    why="that are followed in a loop of a compiled program: a damaged one may call without end",
)
MASKED_PROGRAM_MOST = policy(
    "MASKED_PROGRAM_MOST",
    30_000,
    unit="instructions",
    why="in larger programs it takes too long to follow what they are given to their attention",
)
FOLLOWED_TERMS_MOST = policy(
    "FOLLOWED_TERMS_MOST",
    200,
    unit="terms and factors",
    why="that a compiled program makes a matrix of, to see whether it is symmetric: kernels have some twenty",
)
INVERSE_ROWS_LEAST = policy(
    "INVERSE_ROWS_LEAST",
    256,
    unit="rows of a matrix that is factored",
    why="below that a factorisation takes as long as the launches of its kernels, whichever it is",
)
SAME_DEEPEST = policy(
    "SAME_DEEPEST",
    12,
    unit="instructions",
    why="back from two values of a compiled program, to see whether they are the same: what a compiler computes twice is less",
)
INVERSE_LEFT_MOST = policy(
    "INVERSE_LEFT_MOST",
    0.8,
    unit="share of the time that an inverse or a decomposition takes",
    why="that the middle of what replaces it may take: above it hardly pays, and the order of rounding errors changes",
)
UNUSED_ROWS_LEAST = policy(
    "UNUSED_ROWS_LEAST", 8, unit="positions", why="of fewer a product costs little more than of one"
)
ROWS_LEFT_MOST = policy(
    "ROWS_LEFT_MOST",
    0.1,
    unit="share of the product's time",
    why="that reading the weights takes for one position of each sample; 3 % for a head of 50,000 classes on an H200",
)
IGNORED_LABELS_LEAST = policy(
    "IGNORED_LABELS_LEAST",
    0.4,
    unit="share of the labels",
    why="that a loss ignores: prompts and masked words are more, and the ends of padded sequences, which other work is wasted on as well, mostly less",
)
LOGITS_MORE = policy(
    "LOGITS_MORE",
    1.1,
    unit="× the rows or classes of a loss",
    why="that its logits have at most: vocabularies are padded to multiples of 64 or more, and the last position of a sequence has no next token",
)
UPDATED_OTHERWISE_MOST = policy(
    "UPDATED_OTHERWISE_MOST",
    0.1,
    unit="share of the optimizer's kernels",
    why="that are not on lists of tensors, such as counters of steps; more may be updates whose size is not known",
)
REPEATED_ROWS_LEAST = policy(
    "REPEATED_ROWS_LEAST",
    2,
    unit="gathered rows for each row of the table",
    why="below that, moving the product before the gather saves less than half of it",
)
REPEATED_ROWS_PADDED = policy(
    "REPEATED_ROWS_PADDED", 1.01, unit="times", why="compilers pad rows to a multiple of 64 or 128"
)
REPEATED_ROWS_COVERED = policy(
    "REPEATED_ROWS_COVERED",
    0.8,
    unit="share of the forward products on that number of rows",
    why="where nearly all of them need no other rows, their gradients do not either",
)
REPEATED_ROWS_MOST = policy(
    "REPEATED_ROWS_MOST",
    2.0,
    unit="times the share of the table's rows",
    why="smaller products reach less of the peak, and kernels that do several things stay in part",
)
EXPANDED_LEAST = policy(
    "EXPANDED_LEAST",
    2.0,
    unit="times the elements",
    why="that a copy writes of what it repeats: a head that two others share is the least that grouped queries have",
)
READER_WITHIN_CALLS = policy(
    "READER_WITHIN_CALLS",
    40,
    unit="calls of the program",
    why="after which a copy of repeated keys or values is read: rotary embeddings and masks come in between, a layer has more",
)
FUSED_GATHER_LEAST = policy(
    "FUSED_GATHER_LEAST",
    0.1,
    unit="share of the gathers' and scatters' time",
    why="that is left when a compiler fuses them: a graph with 20 edges for each node left a sixth on an H200",
)
FUSED_GATHER_MOST = policy(
    "FUSED_GATHER_MOST",
    0.6,
    unit="share of the gathers' and scatters' time",
    why="as above, where the result is wider or its order bad",
)
MESSAGES_READ_SLOWLY = policy(
    "MESSAGES_READ_SLOWLY",
    0.2,
    unit="share of the memory's bandwidth",
    why="at which a sparse product reads a row for each edge at worst; a job of a blind trial, the only one measured, reached 0.55 with 16 edges a node and 64 columns in the forward pass alone: narrow rows, uneven degrees and the transposed product of a backward pass are slower",
)
MESSAGES_READ_FAST = policy(
    "MESSAGES_READ_FAST",
    0.9,
    unit="share of the memory's bandwidth",
    why="at which it reads them at best: rows of many edges stay in the cache",
)
SCAN_PASSES_LEAST = policy(
    "SCAN_PASSES_LEAST",
    3,
    unit="passes over all states of a sequence",
    why="that a parallel scan takes at least: it reads what comes in, writes the sums of blocks, and writes the states; a convolution takes about as many",
)
SCAN_PASSES_PER_LEVEL = policy(
    "SCAN_PASSES_PER_LEVEL",
    2,
    unit="passes for each doubling of the length",
    why="that it takes at most: jax.lax.associative_scan goes up and down a tree, and compilers fuse its levels at best in part",
)
CONVOLUTION_PASSES = policy(
    "CONVOLUTION_PASSES",
    12,
    unit="passes over what goes in or comes out of all turns",
    why="that a long convolution by FFT takes in place of a recurrence with one factor for all turns: three transforms, padded to twice the length, read and write twice as much",
)
SCAN_LEFT_MOST = policy(
    "SCAN_LEFT_MOST",
    0.5,
    unit="share of the loop's time",
    why="that a parallel scan may take, in the middle of both: where each turn moves a large state, the memory and not the turns takes the time",
)
SCAN_KERNEL_MOST_NS = policy(
    "SCAN_KERNEL_MOST_NS",
    10_000,
    unit="ns",
    why="mean length of a kernel of the loop: longer ones fill the device, as those of a batch that is computed in pieces do, and their turns cost little",
)
BROADCAST_SIDE_LEAST = policy(
    "BROADCAST_SIDE_LEAST",
    8,
    unit="times",
    why="by which a broadcast has more elements than each of its inputs, and a sum over it fewer: below that a matrix product spares little, and the distances of points in space lose too many digits by it",
)
BROADCAST_ELEMENTS_LEAST = policy(
    "BROADCAST_ELEMENTS_LEAST",
    100_000_000,
    unit="elements of all broadcasts in a step",
    why="fewer take a device less than half a millisecond",
)
PAIRS_PASSES_LEAST = policy(
    "PAIRS_PASSES_LEAST",
    2,
    unit="passes over the results of all pairs",
    why="that a matrix product in place of a broadcast takes at least: it writes them, and what comes next reads them",
)
PAIRS_PASSES_MOST = policy(
    "PAIRS_PASSES_MOST",
    7,
    unit="passes over the results of all pairs",
    why="that an expanded square takes at most, op by op: the product is written, scaled, and the squares of both sides are added, each read and written",
)
PAIRS_PASSES_COMPILED = policy(
    "PAIRS_PASSES_COMPILED",
    4,
    unit="passes over the results of all pairs",
    why="that it takes at most in a compiled program, which fuses all but the product and, at worst, a sum over the result",
)
BROADCAST_LEFT_MOST = policy(
    "BROADCAST_LEFT_MOST",
    0.5,
    unit="share of the broadcast's time",
    why="that a matrix product may take, in the middle of best and worst: where the sum is short, the memory and not the arithmetic takes the time of a compiled program",
)
TERMS_MOST = policy(
    "TERMS_MOST",
    16,
    unit="terms",
    why="of what is added up over a broadcast, multiplied out: the square of a difference has four, and a matrix product for each of many saves nothing",
)
TERMS_DEEPEST = policy(
    "TERMS_DEEPEST",
    16,
    unit="instructions inside each other",
    why="that are multiplied out: the square of a difference takes five, with changes of type and sign",
)
SORT_ROW_LEAST = policy(
    "SORT_ROW_LEAST",
    256,
    unit="entries of a row",
    why="shorter rows are sorted in a block's own memory, where a selection saves little; 256 is the shortest that was measured on a CPU",
)
SORT_KEPT_MOST = policy(
    "SORT_KEPT_MOST",
    0.125,
    unit="share of a sorted row",
    why="that is read of it at most: what a top-k costs on a CPU grows with what it keeps, and was measured up to this",
)
SORT_KEPT_FEW = policy(
    "SORT_KEPT_FEW",
    0.0156,
    unit="share of a sorted row",
    why="up to which few are kept: 16 of 1,024; the measurements on a CPU fall into two groups there",
)
SORT_LEFT_MOST = policy(
    "SORT_LEFT_MOST",
    0.6,
    unit="share of the sort's time",
    why="that a top-k may take on a GPU, in the middle of best and worst: short rows are sorted nearly as fast as the largest are selected",
)
FROZEN_BY_ARGUMENTS_MOST = policy(
    "FROZEN_BY_ARGUMENTS_MOST",
    4,
    unit="arguments",
    why="of a training program that are taken for zero one after the other: each asks again what all of its results need",
)
BASIS_NEEDED_MOST = policy(
    "BASIS_NEEDED_MOST",
    0.75,
    unit="share of the vectors that a derivative is carried for",
    why="that would do: with more there is little to gain, and the other direction may cost a little more for each",
)
SLICES_IN_STEP_LEAST = policy(
    "SLICES_IN_STEP_LEAST",
    8,
    unit="gradients of slices in a step",
    why="fewer hardly cost time, and may be of as many tensors",
)
SLICES_OF_TENSOR_LEAST = policy(
    "SLICES_OF_TENSOR_LEAST",
    3,
    unit="slices of one tensor",
    why="models of healthy jobs take halves of a tensor, as rotary embeddings do: to fill and add two of them costs little more than to join them",
)
