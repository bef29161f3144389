package pgtest

import "os/exec"

func asServer(*exec.Cmd) error { return nil }

func chown(string) error { return nil }
