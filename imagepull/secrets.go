package imagepull

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// longestSource leaves room for the suffix in the name of a copy.
const longestSource = longestName - 17

// Limits of pull secrets, which every namespace's users can make.
const (
	// MaxPullSecrets is how many pull secrets a job may name.
	MaxPullSecrets = 32
	// MaxPullSecretBytes is how long the docker configuration in a pull secret may be.
	MaxPullSecretBytes = 64 << 10
)

// PullSecretsOf returns the names of the pull secrets of a job, each once, and no more than a job may name.
func PullSecretsOf(job *v1beta1.ImagePullJob) []string {
	names := distinct(job.Spec.PullSecrets)
	return names[:min(len(names), MaxPullSecrets)]
}

// PullSecretData returns the docker configuration of a secret, which is the data that copies have. It cuts the
// configuration at MaxPullSecretBytes+1 bytes, which suffices to detect one that is too long. It returns nil for a
// secret without a configuration, or of another type than the two docker types.
func PullSecretData(s *corev1.Secret) map[string][]byte {
	key := dataKey(s.Type)
	data, found := s.Data[key]
	if key == "" || !found {
		return nil
	}
	return map[string][]byte{key: slices.Clone(data[:min(len(data), MaxPullSecretBytes+1)])}
}

// CopyInput is what is known about one pull secret, which nodes may read in one namespace only.
type CopyInput struct {
	// Source is the name of the secret in the namespace of its jobs, and Secret the secret; nil where it does not exist.
	Source types.NamespacedName
	Secret *corev1.Secret
	// Namespace of the copies. Empty is [v1beta1.DefaultImagePullSecretNamespace].
	Namespace string
	// Copies are the secrets in that namespace. Those that are no copies of the secret do no harm.
	Copies []*corev1.Secret
	// Users are the jobs under way that name the secret, each as namespace/name.
	Users []string
	// KeepUsers leaves jobs that have ended in the list of a copy that is otherwise as it should be: many may end at once.
	KeepUsers bool
}

// CopyPlan is what to write about the copy of one pull secret, in the order of the fields.
type CopyPlan struct {
	// Delete are copies that no job under way uses, all but one of several, and one that cannot be changed.
	Delete []*corev1.Secret
	// Apply is the copy to create or to update; nil where it is as it should be.
	Apply *corev1.Secret
	// Reference is what NodeImages list. It has no name where Problem says why the image is pulled without the secret.
	Reference v1beta1.ReferenceObject
	// Problem is a secret that does not exist, or that nodes cannot use; nil for none.
	Problem *note.Note
}

// PlanCopy plans the copy of a pull secret. A copy has the type and the docker configuration of its source, its name
// and the jobs that use it; nothing else is copied. Without a job under way that names the secret there is no copy. A
// source that does not exist, has another type, cannot be parsed or is too long is noted, and leaves its copy as it is.
func PlanCopy(in CopyInput) CopyPlan {
	in.Namespace = cmp.Or(in.Namespace, v1beta1.DefaultImagePullSecretNamespace)
	copies := slices.DeleteFunc(slices.Clone(in.Copies), func(s *corev1.Secret) bool {
		return s == nil || s.Namespace != in.Namespace || s.DeletionTimestamp != nil ||
			s.Annotations[v1beta1.ImagePullSecretSourceKey] != in.Source.String()
	})
	slices.SortFunc(copies, func(a, b *corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	if len(in.Users) == 0 {
		return CopyPlan{Delete: copies}
	}
	if why := unusable(in.Secret); why != nil {
		problem := newNote(why.Code, in.Source.String(), why.Text+"; the image is pulled without it")
		return CopyPlan{Problem: &problem}
	}
	plan, want := CopyPlan{}, in.wanted()
	if len(copies) > 0 {
		have := copies[0]
		plan.Delete = copies[1:]
		want.Name = have.Name
		if have.Annotations[v1beta1.ImagePullSecretModeKey] == "" {
			delete(want.Annotations, v1beta1.ImagePullSecretModeKey)
		}
		fresh := have.Type == want.Type && sameData(have.Data, want.Data)
		switch {
		case fresh && in.lists(usersOf(have)):
			want = nil
		case have.Type != want.Type || !fresh && have.Immutable != nil && *have.Immutable:
			plan.Delete = copies // the API server refuses the change, for ever
		default:
			want.UID = have.UID
		}
		plan.Reference = referenceTo(have)
	} else {
		plan.Reference = referenceTo(want)
	}
	plan.Apply = want
	return plan
}

// lists reports whether the users that a copy lists are as they should be.
func (in CopyInput) lists(users []string) bool {
	isListed := func(user string) bool { return slices.Contains(users, user) }
	isUser := func(user string) bool { return in.KeepUsers || slices.Contains(in.Users, user) }
	return !slices.ContainsFunc(in.Users, func(user string) bool { return !isListed(user) }) &&
		!slices.ContainsFunc(users, func(user string) bool { return !isUser(user) })
}

func referenceTo(s *corev1.Secret) v1beta1.ReferenceObject {
	return v1beta1.ReferenceObject{
		Namespace: s.Namespace,
		Name:      s.Name,
		Mode:      v1beta1.ReferenceObjectMode(s.Annotations[v1beta1.ImagePullSecretModeKey]),
	}
}

// wanted is the copy as it should be. It has neither labels nor annotations of the source, which have other owners. It
// is not immutable, because an immutable copy cannot follow its source. Its name follows from that of the source, so
// that a copy that is deleted by mistake comes back under its name.
func (in CopyInput) wanted() *corev1.Secret {
	name := in.Source.Name
	if len(name) > longestSource {
		name = strings.TrimRight(name[:longestSource], "-.")
	}
	sum := sha256.Sum256([]byte(in.Source.String()))
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Namespace, Name: fmt.Sprintf("%s-%x", name, sum[:8]),
			Annotations: map[string]string{
				v1beta1.ImagePullSecretSourceKey:     in.Source.String(),
				v1beta1.ImagePullSecretModeKey:       string(v1beta1.ReferenceObjectModeBatch),
				v1beta1.ImagePullSecretReferencesKey: strings.Join(slices.Compact(slices.Sorted(slices.Values(in.Users))), ","),
			},
		},
		Type: in.Secret.Type, Data: PullSecretData(in.Secret),
	}
}

// usersOf a copy, each namespace/name of a job.
func usersOf(s *corev1.Secret) []string {
	var users []string
	for user := range strings.SplitSeq(s.Annotations[v1beta1.ImagePullSecretReferencesKey], ",") {
		if user = strings.TrimSpace(user); user != "" && !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	return users
}

// unusable returns why nodes cannot use a pull secret, as the code and the text of a note; nil where they can.
func unusable(s *corev1.Secret) *note.Note {
	if s == nil {
		return &note.Note{Code: NoteNoSecret, Text: "does not exist"}
	}
	key := dataKey(s.Type)
	switch {
	case key == "":
		return &note.Note{Code: NoteBadSecret, Text: fmt.Sprintf("type must be %s or %s",
			corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg)}
	case len(s.Data[key]) > MaxPullSecretBytes:
		return &note.Note{Code: NoteBadSecret, Text: fmt.Sprintf("data[%s] must not be longer than %d bytes",
			key, MaxPullSecretBytes)}
	}
	if _, err := NewKeyring(s); err != nil {
		return &note.Note{Code: NoteBadSecret, Text: err.Error()}
	}
	return nil
}

func sameData(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
