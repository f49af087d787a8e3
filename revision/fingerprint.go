package revision

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
)

// Fingerprint is the number by which kubelets and the reference recognise that a value has changed: a hash of the bytes
// of its JSON, printed as a list of numbers.
func Fingerprint(v any) (uint32, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encode what is hashed: %w", err)
	}
	text := append(make([]byte, 0, 16+4*len(data)), "([]uint8)["...)
	for i, b := range data {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendUint(text, uint64(b), 10)
	}
	h := fnv.New32a()
	_, _ = h.Write(append(text, ']'))
	return h.Sum32(), nil
}
