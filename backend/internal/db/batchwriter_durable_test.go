package db

import (
	"bufio"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

// An acknowledged write is committed: other connections see it, and its commit has waited for the disk.
func TestBatchWriter_AnswersAfterCommit(t *testing.T) {
	n := newNotes(t)
	var synchronous int
	if err := n.writes.QueryRow("PRAGMA synchronous").Scan(&synchronous); err != nil || synchronous != 2 {
		t.Errorf("synchronous is %d (error %v), want 2, so that commits wait for the disk", synchronous, err)
	}
	var writers sync.WaitGroup
	for w := range 16 {
		writers.Go(func() {
			for i := range 20 {
				id := w*1000 + i
				if err := n.Write(t.Context(), func(tx *sql.Tx) error { return n.insert(tx, id) }); err != nil || !n.has(id) {
					t.Errorf("note %d: got error %v, want it committed", id, err)
				}
			}
		})
	}
	writers.Wait()
}

// childFile is the environment variable with the database path for the process that the test kills. TestMain reads it
// too.
const childFile = "SERVICE_TEST_GROUP_FILE"

// Killing a process while sixteen callers write loses no acknowledged write.
func TestBatchWriter_KilledProcessLosesNothingAcknowledged(t *testing.T) {
	if file := os.Getenv(childFile); file != "" {
		writeUntilKilled(t, file)
		return
	}
	n := newNotes(t)
	file := n.path()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0],
		"-test.run=^TestBatchWriter_KilledProcessLosesNothingAcknowledged$")
	cmd.Env = append(os.Environ(), childFile+"="+file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var told []int
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if id, err := strconv.Atoi(lines.Text()); err == nil {
			told = append(told, id)
		}
		if len(told) == 200 {
			_ = cmd.Process.Kill() // earlier output remains in the pipe
		}
	}
	_ = cmd.Wait()
	if len(told) < 200 {
		t.Fatalf("only %d writes were acknowledged, want at least 200", len(told))
	}
	again, err := Attach(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	n.DB = again
	for _, id := range told {
		if !n.has(id) {
			t.Errorf("note %d was acknowledged but is missing", id)
		}
	}
}

func writeUntilKilled(t *testing.T, file string) {
	s, err := Attach(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	n := &notes{DB: s, t: t}
	var writers sync.WaitGroup
	for w := range 16 {
		writers.Go(func() {
			for i := range 5000 {
				id := w*10_000 + i
				if err := n.Write(t.Context(), func(tx *sql.Tx) error { return n.insert(tx, id) }); err != nil {
					return
				}
				fmt.Fprintf(os.Stdout, "%d\n", id)
			}
		})
	}
	writers.Wait()
}
