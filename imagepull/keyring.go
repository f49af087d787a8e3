package imagepull

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Credential is one way to log in. The tokens are what a registry gave in exchange for a password.
type Credential struct {
	Username, Password, IdentityToken, RegistryToken string
}

// Keyring knows which credentials go with which repositories. The zero value knows none.
type Keyring struct {
	rings []ring
}

// ring holds what has one origin. Hub's credentials serve where nothing of the same origin matches.
type ring map[string][]Credential

// hubKey is under what the credentials of Docker Hub are kept.
const hubKey = "index.docker.io"

// NewKeyring holds the credentials of secrets, in their order. Secrets of other types, and empty ones, have none. A
// secret that cannot be parsed is left out: the error next to the keyring names the secret, its key and the entry, but
// nothing of what is secret.
func NewKeyring(secrets ...*corev1.Secret) (Keyring, error) {
	held := ring{}
	var faults []error
	for _, s := range secrets {
		if s == nil {
			continue
		}
		key := dataKey(s.Type)
		data := s.Data[key]
		if len(data) == 0 {
			continue
		}
		entries, err := parseConfig(data, s.Type)
		if err != nil {
			faults = append(faults, fmt.Errorf("secret %s/%s, key %s: %w", s.Namespace, s.Name, key, err))
			continue
		}
		held.add(entries)
	}
	return Keyring{rings: []ring{held}}, errors.Join(faults...)
}

// ReadKeyring holds what a docker configuration says, which is not in a secret but in a file. The type says which of
// the two formats it has.
func ReadKeyring(data []byte, format corev1.SecretType) (Keyring, error) {
	if dataKey(format) == "" {
		return Keyring{}, fmt.Errorf("docker configuration: unknown format %q", format)
	}
	entries, err := parseConfig(data, format)
	if err != nil {
		return Keyring{}, fmt.Errorf("docker configuration: %w", err)
	}
	held := ring{}
	held.add(entries)
	return Keyring{rings: []ring{held}}, nil
}

// Then is a keyring that gives what this one has, and after that what the other has.
func (k Keyring) Then(other Keyring) Keyring {
	return Keyring{rings: slices.Concat(k.rings, other.rings)}
}

// Lookup gives the credentials for a repository in the order in which they are to be tried, the most specific first.
// None means that the repository is read anonymously. The repository is a full name, see [Reference.Repository].
func (k Keyring) Lookup(repository string) []Credential {
	var found []Credential
	for _, r := range k.rings {
		found = append(found, r.lookup(repository)...)
	}
	return found
}

// Matches says whether a key of a docker configuration, or a pattern of a credential provider, is for a repository: the
// same port, hosts with as many parts, where * stands for anything in one part, and a path that the repository's
// begins with.
func Matches(pattern, repository string) bool {
	p, err := locate(pattern)
	if err != nil {
		return false
	}
	r, err := locate(repository)
	return err == nil && matches(p, r)
}

func (r ring) lookup(repository string) []Credential {
	target, err := locate(repository)
	if err != nil {
		return nil
	}
	var found []Credential
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(r))) {
		if pattern, err := locate(key); err == nil && matches(pattern, target) {
			found = append(found, r[key]...)
		}
	}
	if len(found) == 0 && onHub(repository) {
		found = slices.Clone(r[hubKey])
	}
	return found
}

// add keeps credentials under the keys that they match by. Entries that say nothing are no credentials.
func (r ring) add(entries map[string]Credential) {
	for _, location := range slices.Sorted(maps.Keys(entries)) {
		c := entries[location]
		key, ok := keyOf(location)
		if ok && c != (Credential{}) && !slices.Contains(r[key], c) {
			r[key] = append(r[key], c)
		}
	}
}

// keyOf an entry: its host and path. Docker writes versions of its API into the path, which are no part of a
// repository.
func keyOf(location string) (string, bool) {
	u, err := locate(location)
	if err != nil {
		return "", false
	}
	where := u.Path
	if strings.HasPrefix(where, "/v1/") || strings.HasPrefix(where, "/v2/") {
		where = where[len("/v1"):]
	}
	if where == "/" {
		where = ""
	}
	return u.Host + where, true
}

func locate(s string) (*url.URL, error) {
	if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
		s = "https://" + s
	}
	return url.Parse(s)
}

func matches(pattern, target *url.URL) bool {
	want, have := strings.Split(pattern.Hostname(), "."), strings.Split(target.Hostname(), ".")
	if pattern.Port() != target.Port() || len(want) != len(have) || !strings.HasPrefix(target.Path, pattern.Path) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(want[i], have[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// onHub says whether a repository is on Docker Hub.
func onHub(repository string) bool {
	first, _, more := strings.Cut(repository, "/")
	switch {
	case first == "":
		return false
	case !more || first == "docker.io" || first == hubKey:
		return true
	}
	return !strings.ContainsAny(first, ".:")
}

// dataKey is where a secret of a type keeps its docker configuration.
func dataKey(format corev1.SecretType) string {
	switch format {
	case corev1.SecretTypeDockerConfigJson:
		return corev1.DockerConfigJsonKey
	case corev1.SecretTypeDockercfg:
		return corev1.DockerConfigKey
	}
	return ""
}

// entry is a line of a docker configuration.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

func parseConfig(data []byte, format corev1.SecretType) (map[string]Credential, error) {
	var file struct {
		Auths map[string]entry `json:"auths"`
	}
	where, into := "auths", any(&file)
	if format == corev1.SecretTypeDockercfg {
		where, into = "", &file.Auths
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, fmt.Errorf("not a docker configuration: %w", withoutValue(err))
	}
	parsed := make(map[string]Credential, len(file.Auths))
	for _, location := range slices.Sorted(maps.Keys(file.Auths)) {
		c, err := file.Auths[location].credential()
		if err != nil {
			return nil, fmt.Errorf("%s[%q].auth: %w", where, nameable(location), err)
		}
		parsed[location] = c
	}
	return parsed, nil
}

func (e entry) credential() (Credential, error) {
	c := Credential{
		Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken,
	}
	if e.Auth == "" {
		return c, nil
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(e.Auth), "="))
	if err != nil {
		return Credential{}, errors.New("not in base64")
	}
	user, password, ok := strings.Cut(string(text), ":")
	if !ok {
		return Credential{}, errors.New("not of the form user:password")
	}
	c.Username, c.Password = user, password
	return c, nil
}

// withoutValue is what is wrong with a text, without a piece of it.
func withoutValue(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("a value of the wrong type at byte %d", kind.Offset)
	}
	return errors.New("no JSON")
}

// nameable is the key of an entry without a password that may be in it.
func nameable(location string) string {
	if key, ok := keyOf(location); ok {
		return key
	}
	return "?"
}
