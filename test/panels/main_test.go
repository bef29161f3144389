package main

import (
	"slices"
	"testing"

	"github.com/service-dev/service/glasses"
)

func TestColumns_ShowEachPanel(t *testing.T) {
	shown := slices.Concat(columns...)
	for _, m := range glasses.Models() {
		if m.Panel != nil && !slices.Contains(shown, m.ID) {
			t.Errorf("README's picture does not show %s", m.ID)
		}
	}
}
