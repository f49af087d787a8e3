package revision_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"testing"

	"k8s.io/apimachinery/pkg/util/dump"

	"github.com/kruisekit/kruisekit/revision"
)

// TestFingerprint compares with the deep print that kubelets hash.
func TestFingerprint(t *testing.T) {
	for _, v := range []any{
		nil, "", map[string]string{"image": "nginx", "name": "main"}, []byte{0, 1, 255}, "\t\x7f\u2028ü",
	} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New32a()
		fmt.Fprint(h, dump.ForHash(data))
		if got, err := revision.Fingerprint(v); err != nil || got != h.Sum32() {
			t.Errorf("%v: want %d, got %d, %v", v, h.Sum32(), got, err)
		}
	}
}
