CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE accounts (
	id                  TEXT PRIMARY KEY,
	email               TEXT NOT NULL UNIQUE,
	password_hash       TEXT NOT NULL,
	state               TEXT NOT NULL,
	privacy_accepted_at BIGINT NOT NULL,
	created_at          BIGINT NOT NULL
);
CREATE TABLE web_sessions (
	hash       TEXT PRIMARY KEY,
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE TABLE links (
	id         TEXT PRIMARY KEY,
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	token_hash TEXT NOT NULL UNIQUE,
	host       TEXT NOT NULL,
	os         TEXT NOT NULL,
	client     TEXT NOT NULL,
	ip         TEXT NOT NULL,
	linked_at  BIGINT NOT NULL,
	expires_at BIGINT,
	used_at    BIGINT,
	revoked_at BIGINT
);
CREATE TABLE device_codes (
	device_hash TEXT PRIMARY KEY,
	user_hash   TEXT NOT NULL UNIQUE,
	state       TEXT NOT NULL,
	account_id  TEXT REFERENCES accounts (id) ON DELETE CASCADE,
	link_id     TEXT REFERENCES links (id) ON DELETE CASCADE,
	host        TEXT NOT NULL,
	os          TEXT NOT NULL,
	client      TEXT NOT NULL,
	ip          TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	expires_at  BIGINT NOT NULL,
	interval_ms BIGINT NOT NULL,
	repolled_at BIGINT
);
CREATE TABLE projects (
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	app_id     TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (account_id, app_id)
);
CREATE TABLE sessions (
	id             TEXT PRIMARY KEY,
	account_id     TEXT NOT NULL,
	link_id        TEXT NOT NULL,
	app_id         TEXT NOT NULL,
	platform       TEXT NOT NULL,
	device_model   TEXT NOT NULL,
	is_current     INTEGER NOT NULL,
	created_at     BIGINT NOT NULL,
	last_active_at BIGINT NOT NULL,
	expires_at     BIGINT NOT NULL,
	closed_at      BIGINT,
	last_seq       BIGINT NOT NULL DEFAULT 0,
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE TABLE session_secrets (
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	hash       TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	revoked_at BIGINT,
	PRIMARY KEY (session_id, hash)
);
CREATE TABLE events (
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	seq        BIGINT NOT NULL,
	sender     TEXT NOT NULL,
	frame_id   TEXT NOT NULL,
	kind       TEXT NOT NULL,
	type       TEXT NOT NULL,
	chip       TEXT NOT NULL,
	ok         INTEGER NOT NULL,
	at         BIGINT NOT NULL,
	body       TEXT NOT NULL,
	PRIMARY KEY (session_id, seq)
);
CREATE INDEX web_sessions_expires ON web_sessions (expires_at);
CREATE INDEX links_account ON links (account_id);
CREATE INDEX device_codes_expires ON device_codes (expires_at);
CREATE INDEX device_codes_repolled ON device_codes (repolled_at);
CREATE UNIQUE INDEX sessions_current ON sessions (account_id, link_id, app_id, platform) WHERE is_current = 1;
CREATE INDEX sessions_account ON sessions (account_id, created_at);
CREATE UNIQUE INDEX events_frame ON events (session_id, frame_id, kind, sender);
CREATE INDEX events_display ON events (session_id, seq) WHERE kind = 'request';
INSERT INTO goose_db_version (id, version_id, is_applied, tstamp) VALUES (1, 0, 1, '2026-11-21 06:21:05 +0000 UTC');
INSERT INTO goose_db_version (id, version_id, is_applied, tstamp) VALUES (2, 1, 1, '2026-11-21 06:21:05 +0000 UTC');
INSERT INTO goose_db_version (id, version_id, is_applied, tstamp) VALUES (3, 2, 1, '2026-11-21 06:21:05 +0000 UTC');
INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at) VALUES ('93030775-fd61-4ad8-928c-d13db1727dff', 'day@example.org', '$argon2id$v=19$m=19456,t=2,p=1$gIJcDQowYGLT6QQepKHOMQ$4i6v4VJn0m0r/yad6kGMmhzwRuDFb7Hgk2NK+APuOnM', 'active', 1795242065937, 1795242065937);
INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at) VALUES ('95e5a801-5759-413c-a2e6-574198763b9d', 'night@example.org', '$argon2id$v=19$m=19456,t=2,p=1$nVBVDbYeqZzVJu/8oBrr6w$YFUnbMr3W+Tr/wstZzWzVf2STaQJTgZ/XrkKQt6LcqQ', 'active', 1795242066229, 1795242066229);
INSERT INTO web_sessions (hash, account_id, created_at, expires_at) VALUES ('40850c9fb348b5d90dab588df68595bfd86ab6ab8384df749bdcbfaaee013fa5', '93030775-fd61-4ad8-928c-d13db1727dff', 1795242065938, 1797834065938);
INSERT INTO web_sessions (hash, account_id, created_at, expires_at) VALUES ('8bf16030e61018bc2bb9ba7f9f72ea3d30f3620d2b49a05a1dfa2b76933712c9', '95e5a801-5759-413c-a2e6-574198763b9d', 1795242066230, 1797834066230);
INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at, expires_at, used_at, revoked_at) VALUES ('faf3b208-7d0e-4ba9-825c-734bb5b1f123', '93030775-fd61-4ad8-928c-d13db1727dff', '18f8a576bd13f7c9a57da839c58773b6eb6f059980a6d57f410baadc12c93735', 'vm', 'linux/amd64', 'e2e-agent', '127.0.0.1', 1795242065944, NULL, 1795242065946, NULL);
INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at, expires_at, used_at, revoked_at) VALUES ('c3e36d91-57a3-40fe-9865-88ee53534a52', '95e5a801-5759-413c-a2e6-574198763b9d', '407e9aecd88eb67bea310e428cc16a7d165d9a0b534be75b18497a2a3e880a5f', 'vm', 'linux/amd64', 'e2e-agent', '127.0.0.1', 1795242066235, NULL, 1795242066237, NULL);
INSERT INTO device_codes (device_hash, user_hash, state, account_id, link_id, host, os, client, ip, created_at, expires_at, interval_ms, repolled_at) VALUES ('3360da835b89a859c4e5ed2fc8c07d05e630593f9060bab1df1556000ce83ae4', '1a9d4429f4e9b02e6d3cc2e1809703937da80bc654b10926b372d7aa41e83c42', 'redeemed', '93030775-fd61-4ad8-928c-d13db1727dff', 'faf3b208-7d0e-4ba9-825c-734bb5b1f123', 'vm', 'linux/amd64', 'e2e-agent', '127.0.0.1', 1795242065890, 1795242665890, 1000, NULL);
INSERT INTO device_codes (device_hash, user_hash, state, account_id, link_id, host, os, client, ip, created_at, expires_at, interval_ms, repolled_at) VALUES ('85fac8b2b7c94199bfa6fce5ebf9c8a000dc5bb08b225818b278fd85473d06e4', 'd5efaace96519629fd4e6d7ede9c0c8debe80a7e8a6a0b156c307c10f03f1455', 'redeemed', '95e5a801-5759-413c-a2e6-574198763b9d', 'c3e36d91-57a3-40fe-9865-88ee53534a52', 'vm', 'linux/amd64', 'e2e-agent', '127.0.0.1', 1795242066183, 1795242666183, 1000, NULL);
INSERT INTO projects (account_id, app_id, created_at) VALUES ('93030775-fd61-4ad8-928c-d13db1727dff', 'com.example.day', 1795242065948);
INSERT INTO projects (account_id, app_id, created_at) VALUES ('95e5a801-5759-413c-a2e6-574198763b9d', 'com.example.day', 1795242066239);
INSERT INTO sessions (id, account_id, link_id, app_id, platform, device_model, is_current, created_at, last_active_at, expires_at, closed_at, last_seq) VALUES ('ses_xp7e6ff6uf3db2sxxsdz', '93030775-fd61-4ad8-928c-d13db1727dff', 'faf3b208-7d0e-4ba9-825c-734bb5b1f123', 'com.example.day', 'web', 'rayban_display', 1, 1795242065948, 1795242065969, 1795328465969, NULL, 1);
INSERT INTO sessions (id, account_id, link_id, app_id, platform, device_model, is_current, created_at, last_active_at, expires_at, closed_at, last_seq) VALUES ('ses_hgp6pi67h6lfkcv2ci5b', '95e5a801-5759-413c-a2e6-574198763b9d', 'c3e36d91-57a3-40fe-9865-88ee53534a52', 'com.example.day', 'web', 'rayban_display', 1, 1795242066239, 1795242066253, 1795328466253, NULL, 1);
INSERT INTO session_secrets (session_id, hash, created_at, revoked_at) VALUES ('ses_xp7e6ff6uf3db2sxxsdz', 'd5c913d13b374fe8cfae7cfd980722e4bf64385ae7b20a669550687b9b45329f', 1795242065950, NULL);
INSERT INTO session_secrets (session_id, hash, created_at, revoked_at) VALUES ('ses_hgp6pi67h6lfkcv2ci5b', 'd6cc38cc1a30a48cb088b20c4f7645b6b7e8a51dfbb4188b8f5b928f10b1e776', 1795242066240, NULL);
INSERT INTO events (session_id, seq, sender, frame_id, kind, type, chip, ok, at, body) VALUES ('ses_xp7e6ff6uf3db2sxxsdz', 1, 'service', 'svc-KPCNCLFFHCCF67OUZV3RRVT4BV', 'event', 'app.attached', 'lifecycle', 0, 1795242065970, '{"name":"Hello Glasses","version":"1.0"}');
INSERT INTO events (session_id, seq, sender, frame_id, kind, type, chip, ok, at, body) VALUES ('ses_hgp6pi67h6lfkcv2ci5b', 1, 'service', 'svc-Q2VAIQM7M5DNMJKPYONR3YBNBU', 'event', 'app.attached', 'lifecycle', 0, 1795242066253, '{"name":"Hello Glasses","version":"1.0"}');
