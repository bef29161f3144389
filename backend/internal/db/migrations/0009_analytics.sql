-- +goose Up
-- id identifies the project in the tables below, whose many rows should be short. used counts the events of used_day
-- toward the quota.
CREATE TABLE analytics_projects (
	id         BIGINT PRIMARY KEY,
	account_id TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	used_day   BIGINT NOT NULL,
	used       BIGINT NOT NULL,
	UNIQUE (account_id, app_id),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);

-- Hashes of the ids of counted events, with the day of arrival, kept for as long as an event may be sent again.
CREATE TABLE analytics_seen (
	project BIGINT NOT NULL REFERENCES analytics_projects (id) ON DELETE CASCADE,
	hash    BYTEA NOT NULL,
	day     BIGINT NOT NULL,
	PRIMARY KEY (project, hash)
);
CREATE INDEX analytics_seen_day ON analytics_seen (day);

-- at counts hours since 1970 if span is 0, and days if span is 1. kind is an analytics.Kind.
CREATE TABLE analytics_sums (
	project BIGINT NOT NULL REFERENCES analytics_projects (id) ON DELETE CASCADE,
	span    BIGINT NOT NULL,
	at      BIGINT NOT NULL,
	kind    BIGINT NOT NULL,
	name    TEXT NOT NULL,
	n       BIGINT NOT NULL,
	PRIMARY KEY (project, span, at, kind, name)
);

-- Active installs of recent days, hashed with the day's salt. hours has one bit for each hour in which the install
-- was active.
CREATE TABLE analytics_installs (
	project BIGINT NOT NULL REFERENCES analytics_projects (id) ON DELETE CASCADE,
	day     BIGINT NOT NULL,
	hash    BYTEA NOT NULL,
	hours   BIGINT NOT NULL,
	weight  BIGINT NOT NULL,
	PRIMARY KEY (project, day, hash)
);

CREATE TABLE analytics_salts (
	day  BIGINT PRIMARY KEY,
	salt BYTEA NOT NULL
);

-- +goose Down
DROP TABLE analytics_salts;
DROP TABLE analytics_installs;
DROP TABLE analytics_sums;
DROP TABLE analytics_seen;
DROP TABLE analytics_projects;
