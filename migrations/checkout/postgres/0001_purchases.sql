-- Checkout's book: who wanted to buy what, how far each purchase has come, and what the buyer was answered.
--
-- One decision shapes this file: **a purchase is finished from this book alone.** Everything that a driver needs
-- stands in the row: the wish, how it is to be guarded, the saga's state, and who is at it until when. A process
-- may be killed between any two writes; another one claims the row and goes on.
--
-- The tables here and in ../sqlite are the same in each engine's own words. Ids are text (the purchase's id is
-- the hold's and the payment's). Times are cut to milliseconds before they are stored.

create table purchase (
    purchase_id       text primary key,
    -- The scope in which a caller's key counts, the key, and a hash of what was asked for with it.
    buyer             text not null,
    idempotency_key   text not null,
    fingerprint       text not null,
    -- The wish, as it was sent.
    items             jsonb not null,
    card              text not null,
    -- How the critical sections of this purchase are guarded and its payment keys made, also when the recovery
    -- worker drives it; and the trace that it belongs to.
    strategy          text not null,
    payment_key       text not null,
    traceparent       text,
    -- Whether that strategy promises one purchase per key.
    guarded           boolean not null,
    -- Of the section that wrote this row.
    fencing_token     bigint,

    -- pending ─▶ completed ─▶ pending (refunding) ─▶ cancelled
    --        ╰─▶ rejected  ─▶ pending, only from `busy`: nothing had happened, the key starts again
    -- `saga` says it all; the other columns are what is searched for.
    status            text not null,
    reason            text,
    amount_minor      bigint,
    currency          text,
    saga              jsonb not null,
    timings           jsonb not null,
    -- Somebody wants it called off, and that is not settled yet. The driver sees it with its next write and
    -- turns around when it may.
    cancel_requested  boolean not null default false,

    -- Who drives it, and until when that is believed without a sign of life. Each claim has a higher number
    -- than the one before, and every write of a driver carries its number: one that was overtaken (it slept too
    -- long, somebody else went on) writes nothing.
    claimed_by        text,
    claimed_until     timestamptz not null,
    claim_no          bigint not null,

    created_at        timestamptz not null,
    updated_at        timestamptz not null,
    constraint purchase_status_known check (status in ('pending', 'completed', 'rejected', 'cancelled')),
    constraint purchase_rejected_for_a_reason check (status <> 'rejected' or reason is not null),
    constraint purchase_sold_for_an_amount
        check (status not in ('completed', 'cancelled') or (amount_minor >= 0 and currency is not null))
);

-- What the critical section looks for; also a buyer's list, newest last.
create index purchase_by_key on purchase (buyer, idempotency_key);
create index purchase_by_buyer on purchase (buyer, purchase_id);

-- One purchase per buyer and key: the last line of defence, only over rows of strategies that promise it.
-- Under `none` two can stand here, and that is what the laboratory shows.
create unique index purchase_one_per_key on purchase (buyer, idempotency_key) where guarded;

-- What the recovery worker looks for: few at any moment.
create index purchase_unfinished on purchase (claimed_until) where status = 'pending' or cancel_requested;

-- The cart, summed per event: what the audit of one event reads.
create table purchase_item (
    purchase_id  text not null references purchase,
    event_id     text not null,
    quantity     bigint not null check (quantity > 0),
    primary key (purchase_id, event_id)
);

create index purchase_item_by_event on purchase_item (event_id);

-- What the buyer was answered, byte for byte, written in the transaction that ends the purchase: there is no
-- moment at which it is over and its answer is not known. The first answer stays, also when a completed purchase
-- is cancelled later.
create table answer (
    purchase_id   text primary key references purchase,
    http_status   bigint not null check (http_status between 200 and 499),
    content_type  text not null,
    body          text not null,
    created_at    timestamptz not null
);

-- Every write that was refused because its fencing token was too old, once per event of the cart: evidence for
-- the audit.
create table stale_write (
    stale_write_id  text primary key,
    event_id        text not null,
    fencing_token   bigint not null,
    at              timestamptz not null
);

create index stale_write_by_event on stale_write (event_id);
