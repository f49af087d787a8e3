// Package storage rewrites the objects of CRDs in their storage version, and removes older versions from
// status.storedVersions.
//
// An API server writes each object in the storage version of its CRD and leaves stored objects as they are. An object
// that was stored before the storage version changed stays in the older version until it is written again. Until then
// each read of the object needs the conversion webhook, and the API server rejects a CRD without the older version.
//
//	targets := []storage.Target{{CRD: "carts.example.com", Version: "v1"}}
//	results, err := storage.Migrate(ctx, config, targets, storage.Options{})
//
// Migrate patches each object with nothing. The API server reads the object, converts it and stores it in the storage
// version. The patch goes to the status where the CRD has one: neither the spec nor the generation can change, and
// webhooks for the kind are not called. A patch names no version of the object, so that the API server itself repeats
// the patch where another writer was faster.
//
// Laws:
//
//   - A CRD whose storage version is not that of its target stays as it is, and so do its objects.
//   - Versions are removed only if each object was rewritten, and only if the CRD has been the same from before the
//     first object until the removal. Otherwise the result has an error, and a second migration is needed.
//   - An object that fails does not stop others. Results name the failed ones.
//   - A migration that was interrupted begins again, and ends with the same result: what is stored in the storage
//     version is not written.
//
// An API server that has not observed the new storage version writes the older one. So Migrate waits before the first
// write ([Options.Settle]), for longer than a request takes that began before the change. Do not migrate while API
// servers are replaced or cannot watch.
//
// When not to use it: for built-in resources, whose API servers have a migrator of their own.
//
// Cost: for each CRD two reads, a list of metadata in pages, one patch for each object, and one patch of the status.
// The pace is that of the given [rest.Config].
package storage
