"""Which step of a multi-agent log failed, judged against several annotators who may disagree."""
