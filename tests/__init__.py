"""One thread for each test process and its children: two test processes share two cores.

Threads of BLAS and OpenMP that wait for one another on busy cores cost ten times the processor time. The libraries read
these variables when they are loaded, which is after this package.
"""

import os

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ.update(ONE_THREAD)
