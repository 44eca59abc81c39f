"""The parts of a running server that its routes share; they hold no session.

    services         `Services`: everything that one server holds, made from the settings
    engine           a bounded queue in front of the one thread of passes
    concurrency      work on other threads, limited in number, which a client can leave
    loads            models that are being loaded
    experiment_runs  experiments that are running
    profile_runs     profiles of heads that are being measured
    links            states of the page under short ids
    replicas         the memory that several servers of one service share
    metrics          counters for Prometheus
    logs             the format of every line of the log

Read `services`, then `engine`.
"""
