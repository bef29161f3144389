-- +goose Up
-- The ledger, in micro-USD. Each transfer debits one book and credits another, and rows never change. A book belongs
-- to the service (free, paid_in, used, operator, closed) or to an account. An account's book has a random name, which
-- identifies nobody after the account is deleted. id names the purpose of the transfer, so that nothing is booked
-- twice.
CREATE TABLE credit_transfers (
	id     TEXT PRIMARY KEY,
	debit  TEXT NOT NULL,
	credit TEXT NOT NULL,
	amount BIGINT NOT NULL CHECK (amount > 0),
	at     BIGINT NOT NULL,
	note   TEXT NOT NULL,
	CHECK (debit <> credit)
);
CREATE INDEX credit_transfers_debit ON credit_transfers (debit, at);
CREATE INDEX credit_transfers_credit ON credit_transfers (credit, at);

-- An account's sums, computed from its transfers and open holds. The CHECK makes the database refuse an overdraft. A
-- NULL cap sets no limit.
CREATE TABLE credit_balances (
	account_id TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
	book       TEXT NOT NULL UNIQUE,
	posted     BIGINT NOT NULL,
	held       BIGINT NOT NULL,
	day_cap    BIGINT,
	month_cap  BIGINT,
	opened_at  BIGINT NOT NULL,
	CHECK (held >= 0 AND held <= posted)
);

-- Money set aside for calls. state is open, settled, expired (released because its process stopped renewing it), or
-- late (expired before its call ended). day is the UTC day whose caps it counts toward. project need not exist.
CREATE TABLE credit_holds (
	id          TEXT PRIMARY KEY,
	account_id  TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	project     TEXT NOT NULL,
	amount      BIGINT NOT NULL CHECK (amount > 0),
	charged     BIGINT NOT NULL CHECK (charged >= 0 AND charged <= amount),
	state       TEXT NOT NULL,
	day         TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	lease_until BIGINT NOT NULL
);
CREATE INDEX credit_holds_account ON credit_holds (account_id, state);
CREATE INDEX credit_holds_lease ON credit_holds (state, lease_until);

-- The amounts that an account and each of its projects have spent and hold in a period: a day such as 2026-01-02 or a
-- month such as 2026-01. project is empty for the whole account.
CREATE TABLE credit_spending (
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	project    TEXT NOT NULL,
	period     TEXT NOT NULL,
	spent      BIGINT NOT NULL CHECK (spent >= 0),
	held       BIGINT NOT NULL CHECK (held >= 0),
	PRIMARY KEY (account_id, project, period)
);
CREATE INDEX credit_spending_period ON credit_spending (period);

-- Grants of free credit in the last 90 days: keyed hashes of the mail address and the network, and the day. A row
-- cannot be traced to an account.
CREATE TABLE credit_free_grants (
	address_hash TEXT PRIMARY KEY,
	network_hash TEXT NOT NULL,
	at           BIGINT NOT NULL
);
CREATE INDEX credit_free_grants_network ON credit_free_grants (network_hash, at);
CREATE INDEX credit_free_grants_at ON credit_free_grants (at);

-- +goose Down
DROP TABLE credit_free_grants;
DROP TABLE credit_spending;
DROP TABLE credit_holds;
DROP TABLE credit_balances;
DROP TABLE credit_transfers;
