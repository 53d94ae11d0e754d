-- Inventory's book: what there is to sell, who holds some of it for a minute, and the tickets.
--
-- One decision shapes this file: **what was sold is counted, never kept as a number.** `event.available` is the
-- number that the critical section reads and writes, and without a lock it goes wrong: that is what the
-- laboratory shows. `held` and `sold` are counted from the holds and the tickets, so that a lost update of
-- `available` cannot hide behind a second counter that was lost in the same way.
--
-- The tables here and in ../sqlite are the same in each engine's own words. Ids are text, because a caller may
-- bring its own (1 to 64 of a-z, 0-9 and -). Times are cut to milliseconds before they are stored.

create table event (
    event_id       text primary key,
    name           text not null,
    capacity       bigint not null,
    -- No check (available >= 0), and on purpose: it would not stop the race (the section writes an absolute
    -- value, computed from what it read), it would only turn some of its victims into errors.
    available      bigint not null,
    amount_minor   bigint not null,
    currency       text not null,
    max_per_buyer  bigint,
    -- Every write of `available` adds one, whoever writes and however: what `optimistic` compares, and the
    -- order in which the writes happened.
    version        bigint not null default 0,
    -- The newest fencing token that has written here; an older one is refused.
    fencing_token  bigint not null default 0,
    created_at     timestamptz not null,
    constraint event_capacity_in_range check (capacity between 1 and 1000000),
    constraint event_amount_not_negative check (amount_minor >= 0),
    constraint event_max_per_buyer_positive check (max_per_buyer >= 1)
);

-- GET /v1/events: the newest first.
create index event_by_age on event (created_at desc, event_id desc);

-- placed ──confirm──▶ confirmed                       tickets exist, for ever
--   │ ╲──────time───▶ expired                         stock is back
--   ╰──delete──▶ releasing ──▶ released               stock is owed, then back
-- (never placed) ──delete──▶ closed                   the id is used up, so that a late PUT cannot place it
--
-- Each arrow is one conditional update (`… where status = 'placed' …`), in the transaction that also moves the
-- stock or writes the tickets. Two that race for one hold cannot both find it `placed`: a hold is consumed or
-- given back exactly once.
create table hold (
    hold_id        text primary key,
    status         text not null,
    -- The rest is what was asked for, so that the same request is recognised and gets the same answer. A closed
    -- id was never asked for with anything.
    buyer          text,
    ttl_ms         bigint,
    amount_minor   bigint,
    currency       text,
    -- How the hold was placed. Whoever gives its stock back does so under the same lock: an increment between
    -- somebody else's locked read and write would be overwritten.
    strategy       text not null,
    fencing_token  bigint,
    created_at     timestamptz not null,
    expires_at     timestamptz not null,
    -- When it left `placed` for good.
    ended_at       timestamptz,
    constraint hold_status_known
        check (status in ('placed', 'confirmed', 'releasing', 'released', 'expired', 'closed')),
    constraint hold_placed_for_somebody
        check (status = 'closed' or (buyer is not null and amount_minor >= 0 and currency is not null))
);

-- What the worker looks for: stock that is owed, and holds whose time is over. Both are few at any moment.
create index hold_unfinished on hold (expires_at) where status in ('placed', 'releasing');
-- The limit per buyer.
create index hold_by_buyer on hold (buyer) where status in ('placed', 'releasing', 'confirmed');

-- The lines as they were sent: the same event may stand on two of them.
create table hold_item (
    hold_id   text not null references hold,
    line      bigint not null,
    event_id  text not null references event,
    quantity  bigint not null,
    primary key (hold_id, line),
    constraint hold_item_quantity_in_range check (quantity between 1 and 10)
);

create index hold_item_by_event on hold_item (event_id, hold_id);

create table ticket (
    ticket_id   text primary key,
    event_id    text not null references event,
    hold_id     text not null references hold,
    created_at  timestamptz not null
);

create index ticket_by_event on ticket (event_id);
create index ticket_by_hold on ticket (hold_id);

-- The fencing tokens of accepted writes, in the order in which the writes happened (`event.version` after each):
-- at most two per hold, one that takes and one that gives back. The audit checks that they never go down.
create table accepted_token (
    event_id       text not null references event,
    version        bigint not null,
    fencing_token  bigint not null,
    primary key (event_id, version)
);

-- How many writes came with a token older than the newest. Not a column of `event`: the count is written after
-- the refused transaction was rolled back, and must not disturb the row that the next holder is about to write.
create table refused_token (
    event_id  text primary key references event,
    refused   bigint not null
);
