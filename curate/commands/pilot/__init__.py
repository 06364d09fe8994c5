"""`curate pilot`: people grade a few pairs before judges are paid for all, and a panel and a rule are proposed."""
