-- +goose Up
-- Caps on a project's spending through the gateway, in micro-USD. NULL sets no limit.
CREATE TABLE gateway_settings (
	account_id TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	day_cap    BIGINT,
	month_cap  BIGINT,
	PRIMARY KEY (account_id, app_id),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);

-- Sums of calls by hour. kind is the interface that was called, and source is who paid. Refused calls count only in
-- refused.
CREATE TABLE gateway_usage (
	account_id  TEXT NOT NULL,
	app_id      TEXT NOT NULL,
	hour        BIGINT NOT NULL,
	model       TEXT NOT NULL,
	kind        TEXT NOT NULL,
	source      TEXT NOT NULL,
	calls       BIGINT NOT NULL,
	failed      BIGINT NOT NULL,
	cancelled   BIGINT NOT NULL,
	refused     BIGINT NOT NULL,
	estimated   BIGINT NOT NULL,
	text_in     BIGINT NOT NULL,
	text_cached BIGINT NOT NULL,
	text_out    BIGINT NOT NULL,
	duration_ms BIGINT NOT NULL,
	micro_usd   BIGINT NOT NULL,
	PRIMARY KEY (account_id, app_id, hour, model, kind, source),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE INDEX gateway_usage_hour ON gateway_usage (hour);

-- The latest calls: numbers only, never their content, user or address. id is the ID of the hold, if there is one.
CREATE TABLE gateway_calls (
	id          TEXT PRIMARY KEY,
	account_id  TEXT NOT NULL,
	app_id      TEXT NOT NULL,
	at          BIGINT NOT NULL,
	model       TEXT NOT NULL,
	kind        TEXT NOT NULL,
	source      TEXT NOT NULL,
	outcome     TEXT NOT NULL,
	text_in     BIGINT NOT NULL,
	text_cached BIGINT NOT NULL,
	text_out    BIGINT NOT NULL,
	estimated   BIGINT NOT NULL,
	duration_ms BIGINT NOT NULL,
	micro_usd   BIGINT NOT NULL,
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE INDEX gateway_calls_project ON gateway_calls (account_id, app_id, at);
CREATE INDEX gateway_calls_at ON gateway_calls (at);

-- +goose Down
DROP TABLE gateway_calls;
DROP TABLE gateway_usage;
DROP TABLE gateway_settings;
