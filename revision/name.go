package revision

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// maxOwnerLength leaves room for the hash in the name of a revision.
const maxOwnerLength = 223

// Hash of a revision's data. The collision count, when there is one, is part of it.
func Hash(data []byte, collisions *int32) string {
	h := fnv.New32()
	_, _ = h.Write(data)
	if collisions != nil {
		_, _ = h.Write(strconv.AppendInt(nil, int64(*collisions), 10))
	}
	return EncodeSafely(h.Sum32())
}

// EncodeSafely prints a number in letters that form no bad words, as the hashes in names and labels are.
func EncodeSafely(n uint32) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	text := strconv.AppendUint(nil, uint64(n), 10)
	for i, digit := range text {
		text[i] = letters[int(digit)%len(letters)]
	}
	return string(text)
}

// Name of the revision of an owner.
func Name(owner, hash string) string {
	if len(owner) > maxOwnerLength {
		owner = owner[:maxOwnerLength]
	}
	return owner + "-" + hash
}

// Short is the hash in the name of a revision: what follows the last dash.
func Short(name string) string {
	return name[strings.LastIndexByte(name, '-')+1:]
}

// Match reports whether two values of the label controller-revision-hash mean one revision: some pods carry the
// name of it, others only the hash.
func Match(a, b string) bool {
	return a == b || Short(a) == Short(b)
}

// Fingerprint is the number by which kubelets and the reference recognise that a value has changed: a hash of the bytes
// of its JSON, printed as a list of numbers.
func Fingerprint(v any) (uint32, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encode what is hashed: %w", err)
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "(%T)%v", data, data)
	return h.Sum32(), nil
}
