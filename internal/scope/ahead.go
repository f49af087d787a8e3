package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

const (
	// AheadSuffix makes of the path of the webhook that of entries written ahead. There follow the segments of a Mark.
	AheadSuffix = "-new"

	aheadPrefix, aheadOpenPrefix, lastPart = "mpod-new-", "mpod-open-new-", ".kb.io"
	// aheadBytes of a hash: two sets with the same one would write over each other.
	aheadBytes = 8
)

// Mark is the state of a set that an entry was written ahead of.
type Mark struct {
	// Set is its name.
	Set        string
	UID        types.UID
	Generation int64
	// Open says that pods may go without it.
	Open bool
}

// MarkOf is the mark of a set.
func MarkOf(set *appsv1beta1.SidecarSet) Mark {
	return Mark{Set: set.Name, UID: set.UID, Generation: set.Generation, Open: Ignores(set)}
}

// Segments are what a path ends in, by which the webhook learns which set a pod is about.
func (m Mark) Segments() string {
	return "/" + m.Set + "/" + string(m.UID) + "/" + strconv.FormatInt(m.Generation, 10)
}

// In says that a set is in the state of the mark, or in a later one.
func (m Mark) In(set *appsv1beta1.SidecarSet) bool {
	switch {
	case set.Name != m.Set || set.UID != m.UID || set.Generation < m.Generation:
		return false
	case set.Generation > m.Generation:
		return true
	}
	return Ignores(set) == m.Open // an annotation is in no generation
}

// ReadMark reads the mark at the end of a path.
func ReadMark(path string) (Mark, bool) {
	parts := strings.Split(path, "/")
	n := len(parts)
	if n < 5 {
		return Mark{}, false
	}
	base, open := strings.CutSuffix(parts[n-4], openSuffix)
	generation, err := strconv.ParseInt(parts[n-1], 10, 64)
	if err != nil || parts[n-3] == "" || parts[n-2] == "" || !strings.HasSuffix(base, AheadSuffix) {
		return Mark{}, false
	}
	return Mark{Set: parts[n-3], UID: types.UID(parts[n-2]), Generation: generation, Open: open}, true
}

// EntryMark is the mark of an entry that was written ahead.
func EntryMark(entry *admissionregistrationv1.MutatingWebhook) (Mark, bool) {
	switch c := &entry.ClientConfig; {
	case c.Service != nil:
		return ReadMark(ptr.Deref(c.Service.Path, ""))
	case c.URL != nil:
		u, err := url.Parse(*c.URL)
		if err != nil {
			return Mark{}, false
		}
		return ReadMark(u.Path)
	}
	return Mark{}, false
}

// Ahead is the entry for one set alone, to be written before the set is there; nil if it selects no pod. Of the input the sets
// and the other steps do not matter. It says by selectors what the computed ones say by conditions: it is for moments, in which
// there may be many like it, and API servers would compile a condition, and take every pod apart for it.
func Ahead(in Input, set *appsv1beta1.SidecarSet) (*admissionregistrationv1.MutatingWebhook, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	groups := map[string]*group{}
	file(groups, set)
	for _, g := range groups {
		mark := MarkOf(set)
		c := append(g.closed, g.open...)[0]
		in.Client = onward(in.Client, AheadSuffix)
		e := frame(in, mark.Open)
		e.ClientConfig = onward(e.ClientConfig, mark.Segments())
		e.Name = aheadName(mark)
		e.ObjectSelector.MatchExpressions = expressions(c.labels)
		s := e.NamespaceSelector
		s.MatchExpressions = slices.Concat(s.MatchExpressions, expressions(map[string]term{corev1.LabelMetadataName: c.namespace}), g.namespaces)
		return e, nil
	}
	return nil, nil //nolint:nilnil // it needs none
}

// Asks says whether a set may be about pods that it was not about before, or must not be missed by those that could go without
// it. Before is nil for a new one.
func Asks(now, before *appsv1beta1.SidecarSet) bool {
	is := map[string]*group{}
	file(is, now)
	if len(is) == 0 {
		return false
	}
	was := map[string]*group{}
	if before != nil {
		file(was, before)
	}
	return !reflect.DeepEqual(is, was)
}

// IsAhead says whether an entry has a name as Ahead gives them.
func IsAhead(name string) bool {
	rest, ok := strings.CutPrefix(name, aheadPrefix)
	if !ok {
		rest, ok = strings.CutPrefix(name, aheadOpenPrefix)
	}
	rest, last := strings.CutSuffix(rest, lastPart)
	raw, err := hex.DecodeString(rest)
	return ok && last && err == nil && len(raw) == aheadBytes
}

func aheadName(m Mark) string {
	sum := sha256.Sum256([]byte(m.Set))
	prefix := aheadPrefix
	if m.Open {
		prefix = aheadOpenPrefix
	}
	return prefix + hex.EncodeToString(sum[:aheadBytes]) + lastPart
}

// Authority is the CA that configurations have for the service of a client, the first one that is found.
func Authority(c admissionregistrationv1.WebhookClientConfig, in ...*admissionregistrationv1.MutatingWebhookConfiguration) []byte {
	if c.Service == nil {
		return c.CABundle
	}
	for _, configuration := range in {
		for i := range configuration.Webhooks {
			have := &configuration.Webhooks[i].ClientConfig
			if have.Service != nil && have.Service.Namespace == c.Service.Namespace && have.Service.Name == c.Service.Name && len(have.CABundle) > 0 {
				return have.CABundle
			}
		}
	}
	return nil
}
