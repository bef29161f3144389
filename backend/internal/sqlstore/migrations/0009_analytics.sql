-- +goose Up
-- id stands for the project in the tables below, which have many rows; used counts the events of used_day for its quota.
CREATE TABLE analytics_projects (
	id         BIGINT PRIMARY KEY,
	account_id TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	used_day   BIGINT NOT NULL,
	used       BIGINT NOT NULL,
	UNIQUE (account_id, app_id),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);

-- Hashes of the ids that were counted, by day of arrival, as long as they could be sent again.
CREATE TABLE analytics_seen (
	project BIGINT NOT NULL REFERENCES analytics_projects (id) ON DELETE CASCADE,
	hash    BYTEA NOT NULL,
	day     BIGINT NOT NULL,
	PRIMARY KEY (project, hash)
);
CREATE INDEX analytics_seen_day ON analytics_seen (day);

-- span 0: at is an hour since 1970, span 1: a day. kind is analytics.Kind.
CREATE TABLE analytics_sums (
	project BIGINT NOT NULL REFERENCES analytics_projects (id) ON DELETE CASCADE,
	span    BIGINT NOT NULL,
	at      BIGINT NOT NULL,
	kind    BIGINT NOT NULL,
	name    TEXT NOT NULL,
	n       BIGINT NOT NULL,
	PRIMARY KEY (project, span, at, kind, name)
);

-- Installs of some last days, hashed with the day's salt: hours has a bit for each hour in which one was active.
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
