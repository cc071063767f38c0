/* SPDX-License-Identifier: Apache-2.0 */
/* Real model files in the cache folder, put there by tools/fetch-assets. */
#ifndef FK_RUNTIME_ASSETS_H
#define FK_RUNTIME_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

#include <fk/status.h>

/* Names of the assets known to this build; NULL past the end. */
const char *fk_asset_name_at(int index);
/* Whether it holds weights: others are data of tests. `index` as above, of an asset that exists. */
bool fk_asset_is_model(int index);
/* Path of the asset's file or folder; FK_ERROR_MISSING (with the command that fetches it) when it is not in the cache,
 * FK_ERROR_INVALID for an unknown name. cache_dir NULL or "": FK_CACHE, XDG_CACHE_HOME/fastkernels, ~/.cache/fastkernels. */
fk_status fk_asset_path(const char *name, const char *cache_dir, char *path, size_t size);
/* The cache folder by the same rule; FK_ERROR_MISSING when there is no home either. */
fk_status fk_cache_dir(const char *cache_dir, char *path, size_t size);

#endif
