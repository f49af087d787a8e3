package process

import (
	"slices"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/gates"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
)

// Gates keep controllers from running, whatever the choice.
func TestChosen(t *testing.T) {
	for name, c := range map[string]struct {
		choice []string
		gates  string
		want   []string
	}{
		"by default":          {[]string{"*"}, "", []string{"*", "-imagelistpulljob"}},
		"empty is all":        {nil, "", []string{"*", "-imagelistpulljob"}},
		"pull jobs":           {[]string{"*"}, "ImagePullJobGate=true", []string{"*"}},
		"no daemon":           {[]string{"*", "-cloneset"}, "ImagePullJobGate=true,KruiseDaemon=false", []string{"*", "-cloneset", "-nodeimage", "-imagelistpulljob"}},
		"pulls in the update": {[]string{"*"}, "PreDownloadImageForInPlaceUpdate=true", []string{"*"}},
	} {
		g, err := gates.Parse(c.gates)
		if err != nil {
			t.Fatal(err)
		}
		got := chosen(options.Options{Controllers: c.choice, Gates: g})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if err := controllers.Check(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No delay is told apart from none given.
func TestNodeImageDelay(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 0: -1} {
		if got := nodeImages(options.Options{NodeImageCreationDelay: given}).CreationDelay; got != want {
			t.Errorf("%s becomes %s", given, got)
		}
	}
}
