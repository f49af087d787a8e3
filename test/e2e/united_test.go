//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
)

const unitedDocument = "../../docs/kinds/uniteddeployment.md"

// testUnitedDocument types what the document says.
func (m *deployed) testUnitedDocument(t *testing.T) {
	m.pushNginx(t)
	namespace := m.Namespace(t)
	for _, words := range typed(t, unitedDocument) {
		line := strings.Join(words, " ")
		said, err := m.Kubectl(t.Context(), append(words, "-n", namespace)...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", line, err, said)
		}
		switch {
		case line == "get ud zoned":
			eventually(t, func(ctx context.Context) error {
				said, err := m.Kubectl(ctx, append(words, "-n", namespace)...)
				if err != nil {
					return err
				}
				return isShown(unitedDocument, said)
			})
		case words[0] == "get" && words[1] == "pods":
			for zone, want := range map[string]int{"zone-1": 2, "zone-2": 3, "zone-3": 1} {
				if got := strings.Count(said, " "+zone+"\n"); got != want {
					t.Errorf("%d pods in %s:\n%s", got, zone, said)
				}
			}
		case words[0] == "describe" && !strings.Contains(said, "Create 3 Subset (CloneSet)"):
			t.Errorf("no events:\n%s", said)
		case words[0] == "delete":
			return // what follows is about trouble
		}
	}
}
