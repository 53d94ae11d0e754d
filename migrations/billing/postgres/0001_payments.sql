-- Billing's book: what we asked the card processor for, and what we know of its answers.
--
-- A row is written *before* the processor is asked and completed after it answered. Between the two it stands
-- in an in-between status (`authorizing`, `capturing`, `voiding`), which says: the outcome is unknown, ask again
-- with the same key. A crash in between therefore loses nothing: a worker finds the row and asks again.

-- One row per *attempt* to authorize a payment. Guarded strategies have exactly one attempt per payment; under
-- `none` a race can leave several, and that is the bug this project exists to show, so nothing here hides it.
create table payment (
    -- UUIDv7: sorts by time, so "the first attempt" is the smallest.
    attempt_id text primary key,
    payment_id text not null,
    -- How the section that wrote this row was guarded, and whether that strategy promises anything.
    strategy text not null,
    guarded boolean not null,
    -- What was asked for. All null in a payment that was voided before it was ever asked for: the row is then
    -- only the memory that this id is used up.
    buyer text,
    card text,
    amount_minor bigint check (amount_minor >= 0),
    currency text,
    status text not null check (status in
        ('authorizing', 'authorized', 'capturing', 'captured', 'voiding', 'voided', 'declined')),
    -- The processor's ids of its ledger lines.
    authorization_id text,
    capture_id text,
    captured_minor bigint not null default 0 check (captured_minor >= 0),
    refunded_minor bigint not null default 0,
    -- The highest fencing token this row has seen. A write with a lower one comes from a holder that lost its
    -- lock without noticing, and is refused.
    fencing_token bigint,
    -- Grows with every write, for the strategy that compares it.
    version bigint not null default 0,
    -- For the strategies without a lock the row itself is the lock: who writes an in-between status owns the
    -- call to the processor until then. Lapses by itself when its owner died.
    claimed_until timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint payment_asked_for_or_closed check (
        (buyer is null) = (amount_minor is null)
        and (buyer is null) = (card is null)
        and (buyer is null) = (currency is null)
        and (buyer is not null or status in ('voiding', 'voided'))),
    -- I5, Σ refunds ≤ captured: the last line of defence, the conditional update is the first.
    constraint payment_refunded_within_captured check (refunded_minor between 0 and captured_minor)
);

create index payment_by_id on payment (payment_id);

-- One authorization per payment: the last line of defence, only over rows of strategies that promise
-- it. `none` stays honest.
create unique index payment_one_per_id on payment (payment_id) where guarded;

-- The settling worker looks here every half second; almost always the index is empty.
create index payment_in_between on payment (updated_at) where status in ('authorizing', 'capturing', 'voiding');

-- One row per refund, named by the caller. The payment's `refunded_minor` is raised in the transaction that
-- writes the row, before the processor is asked: two refunds at once cannot both believe that there is enough left.
create table refund (
    payment_id text not null,
    refund_id text not null,
    attempt_id text not null references payment (attempt_id),
    amount_minor bigint not null check (amount_minor > 0),
    currency text not null,
    -- What could still be given back after this refund: part of the answer, and a repeat gets the same answer.
    refundable_minor bigint not null check (refundable_minor >= 0),
    -- `refused`: the processor would not; the amount was given back to `refunded_minor`.
    status text not null check (status in ('pending', 'done', 'refused')),
    gateway_entry_id text,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint refund_pkey primary key (payment_id, refund_id)
);

create index refund_pending on refund (updated_at) where status = 'pending';

-- Every write that was refused because its fencing token was too old: evidence for the audit.
create table stale_write (
    stale_write_id text primary key,
    payment_id text not null,
    fencing_token bigint not null,
    at timestamptz not null
);

create index stale_write_payment on stale_write (payment_id);
