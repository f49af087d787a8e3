package imagepull

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// longestSource leaves room for the suffix in the name of a copy.
const longestSource = longestName - 7

// Limits of pull secrets, which every namespace's users can make.
const (
	// MaxPullSecrets is how many pull secrets a job may name.
	MaxPullSecrets = 32
	// MaxPullSecretBytes is how long the docker configuration in a pull secret may be.
	MaxPullSecretBytes = 64 << 10
	// MaxBatchSecrets is how many references to copies an image of a NodeImage has before those to deleted copies are
	// dropped.
	MaxBatchSecrets = 64
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

// Claim is what is known about the pull secrets of a job, which the nodes may read in one namespace only.
type Claim struct {
	// Job that names the secrets.
	Job *v1beta1.ImagePullJob
	// Namespace that the nodes may read. Empty is [v1beta1.DefaultImagePullSecretNamespace].
	Namespace string
	// Sources are the secrets in the job's namespace, as far as they exist.
	Sources []*corev1.Secret
	// Copies are the secrets in the nodes' namespace. Those that are copies of the job's secrets, or that refer to the
	// job, are enough; others do no harm.
	Copies []*corev1.Secret
	// Random is any number, for the names of new copies. With another one, other names are tried.
	Random uint32
}

// ClaimPlan is what to write about the pull secrets of a job, in the order of the fields.
type ClaimPlan struct {
	// Delete are copies that no job uses any more, or that a new copy replaces.
	Delete []*corev1.Secret
	// Update are copies with other data, or that others use than before.
	Update []*corev1.Secret
	// Create are new copies.
	Create []*corev1.Secret
	// References are the secrets to list in NodeImages, in the order in which the job names them.
	References []v1beta1.ReferenceObject
	// Notes are about secrets that do not exist, or cannot be used.
	Notes []note.Note
}

// Secrets plans which copies of its pull secrets a job needs, and which it needs no longer: none once it has ended or
// is being deleted. A copy has the type and the docker configuration of its source, its name and its users; nothing
// else is copied. A source that does not exist, has another type, cannot be parsed or is too long is skipped, with a
// note: the nodes pull without it. So are the names after those that a job may have.
func Secrets(c Claim) ClaimPlan {
	if c.Namespace == "" {
		c.Namespace = v1beta1.DefaultImagePullSecretNamespace
	}
	b := claimer{Claim: c, user: c.Job.Namespace + "/" + c.Job.Name}
	var names []string
	if c.Job.DeletionTimestamp == nil && c.Job.Status.CompletionTime == nil {
		names = PullSecretsOf(c.Job)
		if all := distinct(c.Job.Spec.PullSecrets); len(all) > len(names) {
			b.skip(NoteBadSecret, all[len(names)],
				fmt.Sprintf("a job may name at most %d pull secrets, and this one and those after it are left out", MaxPullSecrets))
		}
	}
	if c.Job.Namespace == c.Namespace {
		for _, name := range names {
			b.plan.References = append(b.plan.References, v1beta1.ReferenceObject{Namespace: c.Namespace, Name: name})
		}
		names = nil
	}
	claimed := b.classify(names)
	for _, name := range names {
		b.claim(name, claimed[name])
	}
	return b.plan
}

type claimer struct {
	Claim
	user string
	plan ClaimPlan
}

// classify picks the copy of each wanted secret and releases those that are not wanted. Of several copies of one secret
// the first is picked, or the last that the job uses already.
func (c *claimer) classify(names []string) map[string]*corev1.Secret {
	copies := slices.DeleteFunc(slices.Clone(c.Copies), func(s *corev1.Secret) bool {
		return s == nil || s.Namespace != c.Namespace || s.DeletionTimestamp != nil
	})
	slices.SortFunc(copies, func(a, b *corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	claimed := map[string]*corev1.Secret{}
	for _, s := range copies {
		used := slices.Contains(usersOf(s), c.user)
		namespace, name, _ := strings.Cut(s.Annotations[v1beta1.ImagePullSecretSourceKey], "/")
		switch {
		case namespace == c.Job.Namespace && slices.Contains(names, name):
			if claimed[name] == nil || used {
				claimed[name] = s
			}
		case used:
			c.release(s)
		}
	}
	return claimed
}

func (c *claimer) release(s *corev1.Secret) {
	users := slices.DeleteFunc(usersOf(s), func(user string) bool { return user == c.user })
	if len(users) == 0 {
		c.plan.Delete = append(c.plan.Delete, s)
		return
	}
	c.plan.Update = append(c.plan.Update, usedBy(s.DeepCopy(), users))
}

func (c *claimer) claim(name string, s *corev1.Secret) {
	at := slices.IndexFunc(c.Sources, func(s *corev1.Secret) bool {
		return s != nil && s.Namespace == c.Job.Namespace && s.Name == name
	})
	if at < 0 {
		c.skip(NoteNoSecret, name, "does not exist")
		return
	}
	source := c.Sources[at]
	data := PullSecretData(source)
	fresh := s != nil && s.Type == source.Type && sameData(s.Data, data)
	if why := unusable(source); why != "" && !fresh {
		c.skip(NoteBadSecret, name, why)
		if s != nil && dataKey(s.Type) == "" {
			c.release(s)
		}
		return
	}
	if s == nil {
		c.create(source, []string{c.user})
		return
	}
	c.keep(s, source, data)
}

func (c *claimer) skip(code, name, why string) {
	c.plan.Notes = append(c.plan.Notes, newNote(code, c.Job.Namespace+"/"+name, why+"; the image is pulled without it"))
}

// keep brings a copy in line with its source.
func (c *claimer) keep(s, source *corev1.Secret, data map[string][]byte) {
	users := usersOf(s)
	if !slices.Contains(users, c.user) {
		users = append(users, c.user)
	}
	fresh := sameData(s.Data, data)
	switch {
	case s.Type != source.Type || !fresh && s.Immutable != nil && *s.Immutable:
		// The API server refuses the change, for ever.
		c.plan.Delete = append(c.plan.Delete, s)
		c.create(source, users)
		return
	case !fresh || len(users) > len(usersOf(s)):
		changed := usedBy(s.DeepCopy(), users)
		changed.Data = data
		c.plan.Update = append(c.plan.Update, changed)
	}
	c.refer(s)
}

// create plans a new copy. It copies neither labels nor annotations of the source, which have other owners. It does not
// copy immutable, because an immutable copy cannot follow its source.
func (c *claimer) create(source *corev1.Secret, users []string) {
	key := source.Namespace + "/" + source.Name
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: c.nameOf(source.Name, key),
			Annotations: map[string]string{
				v1beta1.ImagePullSecretSourceKey: key,
				v1beta1.ImagePullSecretModeKey:   string(v1beta1.ReferenceObjectModeBatch),
			},
		},
		Type: source.Type, Data: PullSecretData(source),
	}
	c.plan.Create = append(c.plan.Create, usedBy(s, users))
	c.refer(s)
}

func (c *claimer) refer(s *corev1.Secret) {
	c.plan.References = append(c.plan.References, v1beta1.ReferenceObject{
		Namespace: s.Namespace,
		Name:      s.Name,
		Mode:      v1beta1.ReferenceObjectMode(s.Annotations[v1beta1.ImagePullSecretModeKey]),
	})
}

// nameOf a new copy: that of its source, and six digits that no other copy has.
func (c *claimer) nameOf(source, key string) string {
	if len(source) > longestSource {
		source = strings.TrimRight(source[:longestSource], "-.")
	}
	h := fnv.New32a()
	for n := c.Random; ; n++ {
		h.Reset()
		fmt.Fprintf(h, "%s %s %d", c.user, key, n)
		name := fmt.Sprintf("%s-%06x", source, h.Sum32()&0xffffff)
		taken := func(s *corev1.Secret) bool { return s != nil && s.Name == name }
		if !slices.ContainsFunc(c.Copies, taken) && !slices.ContainsFunc(c.plan.Create, taken) {
			return name
		}
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

func usedBy(s *corev1.Secret, users []string) *corev1.Secret {
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	s.Annotations[v1beta1.ImagePullSecretReferencesKey] = strings.Join(slices.Sorted(slices.Values(users)), ",")
	return s
}

// unusable returns why nodes cannot use a pull secret, or nothing.
func unusable(s *corev1.Secret) string {
	key := dataKey(s.Type)
	switch {
	case key == "":
		return fmt.Sprintf("type must be %s or %s", corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg)
	case len(s.Data[key]) > MaxPullSecretBytes:
		return fmt.Sprintf("data[%s] must not be longer than %d bytes", key, MaxPullSecretBytes)
	}
	if _, err := NewKeyring(s); err != nil {
		return err.Error()
	}
	return ""
}

func sameData(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
