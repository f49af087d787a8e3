package inplace

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"testing"

	"k8s.io/apimachinery/pkg/util/dump"
)

// TestHashOf compares with what the kubelet hashes: the deep print of the JSON's bytes.
func TestHashOf(t *testing.T) {
	for _, v := range []any{nil, "", map[string]string{"image": "nginx", "name": "main"}, []byte{0, 1, 255}, "\t\x7f\u2028ü"} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New32a()
		fmt.Fprint(h, dump.ForHash(data))
		if got, err := hashOf(v); err != nil || got != uint64(h.Sum32()) {
			t.Errorf("%v: want %d, got %d, %v", v, h.Sum32(), got, err)
		}
	}
}
