// Command barepoll is the floor of the token endpoint: an HTTP handler that decodes the body and does one point read
// on SQLite, nothing else. It prints its address.
package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"

	_ "modernc.org/sqlite"
)

func main() {
	dir, err := os.MkdirTemp("", "barepoll")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "b.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(max(4, runtime.NumCPU()))
	for _, statement := range []string{
		"CREATE TABLE codes (hash TEXT PRIMARY KEY, state TEXT NOT NULL, interval_s BIGINT NOT NULL, expires_at BIGINT NOT NULL)",
		"INSERT INTO codes VALUES ('x', 'pending', 5, 9999999999999)",
	} {
		if _, err := db.Exec(statement); err != nil {
			panic(err)
		}
	}
	read, err := db.Prepare("SELECT state, interval_s, expires_at FROM codes WHERE hash = $1")
	if err != nil {
		panic(err)
	}
	http.HandleFunc("POST /api/auth/device/token", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ DeviceCode string }
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var state string
		var interval, expires int64
		if err := read.QueryRow("x").Scan(&state, &interval, &expires); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"pending": true, "pollIntervalSeconds": interval})
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go func() { os.Stdin.Read(make([]byte, 1)); os.RemoveAll(dir); os.Exit(0) }()
	http.Serve(l, nil)
}
