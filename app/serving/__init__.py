"""Work of a running server, next to its routes: threads, queues, processes, links, logs.

    engine           a bounded queue in front of the one thread of passes
    concurrency      work on other threads, limited in number, which a client can leave
    experiment_runs  experiments that are running
    profile_runs     profiles of heads that are being measured
    profile_process  the process that measures one
    links            states of the page under short ids
    replicas         the memory that several servers of one service share
    metrics          counters for Prometheus
    logs             the format of every line of the log

`headlight.services` joins them with the models and the traces. Read `engine`.
"""
