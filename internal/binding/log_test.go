package binding_test

import (
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/note"
)

// Notes are logged for those who ask for details, and for no others.
func TestLogNotes(t *testing.T) {
	notes := []note.Note{{Code: "Paused", Object: "web-0", Text: "updates are paused"}}
	for verbosity, want := range map[int][]string{
		0: nil, 1: {`"level"=1 "msg"="Note" "code"="Paused" "object"="web-0" "text"="updates are paused"`},
	} {
		var lines []string
		logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: verbosity})
		binding.LogNotes(log.IntoContext(t.Context(), logger), notes)
		if !slices.Equal(lines, want) {
			t.Errorf("verbosity %d: got %q", verbosity, lines)
		}
	}
}
