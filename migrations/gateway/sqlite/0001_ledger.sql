-- The card processor's own book: the independent truth of what was charged.
--
-- Two tables. `entry` is append-only: no line is ever changed or deleted, so nothing that happened to a
-- buyer's money can be made unhappened by a bug. What a line is worth today (is this authorization still
-- open?) follows from the lines that came after it.

-- One row per merchant reference. Every call about a reference begins by writing this row, which makes the
-- calls about one reference take turns on PostgreSQL too: two captures, or a void and an authorization, can
-- never look at the ledger at the same moment and both decide that they are the first.
create table reference (
    reference text primary key,
    -- How often an authorization was tried, those that failed before charging included. It is here and not in
    -- memory because some test cards treat the first try differently, and that must hold across a restart.
    authorize_attempts bigint not null default 0 check (authorize_attempts >= 0),
    -- A void of the whole reference closes it: an authorization that was still on its way is refused when it
    -- arrives, and no money stays reserved behind the merchant's back.
    closed boolean not null default false
);

create table entry (
    entry_id text primary key,
    -- The merchant's idempotency key, the only thing by which a retry is told from a second charge.
    merchant_key text not null,
    reference text not null references reference (reference),
    kind text not null check (kind in ('authorize', 'decline', 'capture', 'void', 'refund')),
    -- The test card, on lines that name one.
    card text,
    -- The authorization that a capture or a void is about; null on a void: the whole reference.
    authorization_id text references entry (entry_id),
    amount_minor bigint not null check (amount_minor >= 0),
    currency text not null,
    at text not null,
    -- One line per key: written in the same transaction as the line itself, so there is no moment in which the
    -- money has moved and the key is still unknown. A repeat that arrives meanwhile waits here and is then
    -- answered with this line.
    constraint entry_key unique (merchant_key)
);

create index entry_reference on entry (reference);
