package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

const (
	// ProvisionalSuffix makes the path of provisional entries from that of the webhook. The segments of a Mark follow.
	ProvisionalSuffix = "-new"

	provisionalPrefix, provisionalOpenPrefix, nameEnd = "mpod-new-", "mpod-open-new-", ".kb.io"
	// provisionalSeconds are few: nothing confirms that the set will be stored, and each pod waits for each such entry.
	provisionalSeconds = 2
	// provisionalBytes of a hash in the name: two sets with the same hash would overwrite each other's entry.
	provisionalBytes = 8
)

// Mark is the state of a set that a provisional entry is for.
type Mark struct {
	// Set is its name.
	Set        string
	UID        types.UID
	Generation int64
	// Open reports that pods may be created without the set.
	Open bool
}

// MarkOf returns the mark of a set.
func MarkOf(set *appsv1beta1.SidecarSet) Mark {
	return Mark{Set: set.Name, UID: set.UID, Generation: set.Generation, Open: Ignores(set)}
}

// Segments are the end of the path of a provisional entry, from which the webhook reads the set.
func (m Mark) Segments() string {
	return "/" + m.Set + "/" + string(m.UID) + "/" + strconv.FormatInt(m.Generation, 10)
}

// In reports whether a set is in the state of the mark, or in a later one.
func (m Mark) In(set metav1.Object) bool {
	switch {
	case set.GetName() != m.Set || set.GetUID() != m.UID || set.GetGeneration() < m.Generation:
		return false
	case set.GetGeneration() > m.Generation:
		return true
	}
	return Ignores(set) == m.Open // an annotation changes no generation
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
	if err != nil || parts[n-3] == "" || parts[n-2] == "" || !strings.HasSuffix(base, ProvisionalSuffix) {
		return Mark{}, false
	}
	return Mark{Set: parts[n-3], UID: types.UID(parts[n-2]), Generation: generation, Open: open}, true
}

// Provisional returns the entry for one set alone, to be written before the set is stored; nil if the set selects no
// pod. It ignores the contributions of the input. The entry is ignored where no replica answers, because nothing shows
// that the set will be stored. The entry selects by selectors what computed entries select by conditions: there may be
// many such entries for a moment, and API servers would compile each condition and convert each pod for it.
func Provisional(in Input, set *appsv1beta1.SidecarSet) *admissionregistrationv1.MutatingWebhook {
	selected := selections(set)
	if len(selected) == 0 {
		return nil
	}
	r := selected[0].Read()
	if r.Never || !r.Whole && !r.Bounded() {
		return nil
	}
	mark := MarkOf(set)
	in.Client = onward(in.Client, ProvisionalSuffix)
	e := frame(in, mark.Open)
	e.FailurePolicy, e.TimeoutSeconds = ptr.To(ignore), ptr.To[int32](provisionalSeconds)
	e.ClientConfig = onward(e.ClientConfig, mark.Segments())
	e.Name = provisionalName(mark)
	e.ObjectSelector.MatchExpressions = r.Pod
	e.NamespaceSelector.MatchExpressions = append(e.NamespaceSelector.MatchExpressions, r.Namespace...)
	return e
}

// IsProvisional reports whether an entry has a name as Provisional gives them.
func IsProvisional(name string) bool {
	rest, ok := strings.CutPrefix(name, provisionalPrefix)
	if !ok {
		rest, ok = strings.CutPrefix(name, provisionalOpenPrefix)
	}
	rest, last := strings.CutSuffix(rest, nameEnd)
	raw, err := hex.DecodeString(rest)
	return ok && last && err == nil && len(raw) == provisionalBytes
}

func provisionalName(m Mark) string {
	sum := sha256.Sum256([]byte(m.Set))
	prefix := provisionalPrefix
	if m.Open {
		prefix = provisionalOpenPrefix
	}
	return prefix + hex.EncodeToString(sum[:provisionalBytes]) + nameEnd
}

// Authority returns the CA that configurations have for the service of a client, the first that is found. A
// configuration may be nil.
func Authority(
	c admissionregistrationv1.WebhookClientConfig, in ...*admissionregistrationv1.MutatingWebhookConfiguration,
) []byte {
	if c.Service == nil {
		return c.CABundle
	}
	for _, configuration := range in {
		if configuration == nil {
			continue
		}
		for i := range configuration.Webhooks {
			have := &configuration.Webhooks[i].ClientConfig
			if have.Service != nil && have.Service.Namespace == c.Service.Namespace && have.Service.Name == c.Service.Name &&
				len(have.CABundle) > 0 {
				return have.CABundle
			}
		}
	}
	return nil
}
