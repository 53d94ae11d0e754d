-- A refund that the processor keeps refusing is asked for again ever later, at a time of its own. Without one it stayed
-- the oldest, was asked for first in every round of the settling worker, and kept all later refunds waiting.
alter table refund
    -- How often the worker has asked in vain.
    add column tries integer not null default 0,
    -- When it asks next; null until it has asked in vain once.
    add column next_try_at timestamptz;
