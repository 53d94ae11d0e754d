-- For the tests of this crate: one table with every kind of constraint that services rely on.
create table account (
    account_id blob primary key,
    owner text not null,
    number bigint not null,
    guarded boolean not null,
    opened_at text not null,
    note text,
    balance bigint not null default 0,
    constraint account_balance_positive check (balance >= 0)
);

-- Partial, as the last line of defence in the services is: only guarded rows must be unique.
create unique index account_owner_number_guarded on account (owner, number) where guarded;
