package imagepull_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
)

const (
	job  = "ImagePullJob"
	list = "ImageListPullJob"
	node = "NodeImage"
)

// verbs are the starts of the two paths of a kind.
const (
	mutate   = "/mutate-apps-kruise-io-"
	validate = "/validate-apps-kruise-io-"
)

// review sends a request to the webhook of a kind. It is an update when something is stored.
func review(t *testing.T, o imagepull.Options, verb, kind string, c [3]string) plaintest.Answer {
	t.Helper()
	o.Now = func() time.Time { return time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC) }
	w, err := imagepull.New(o)
	if err != nil {
		t.Fatal(err)
	}
	version, now, stored := c[0], c[1], c[2]
	return w[verb+strings.ToLower(kind)](t.Context(), plaintest.Request(plaintest.Kind(kind), version, now, stored))
}

// open lets everything in.
func open() imagepull.Options { return imagepull.Options{Jobs: true} }
