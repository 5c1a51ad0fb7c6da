// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Fast regions: two registrations each, which are used in turn.
 */
#include <linux/slab.h>

#include "internal.h"

void fr_drop_holds(struct fr_slot *slot)
{
	u32 i;

	for (i = 0; i < slot->hold_count; i++)
		slot->holds[i]->uses--;
	kvfree(slot->holds);
	slot->holds = NULL;
	slot->hold_count = 0;
}

static void fr_keep_pages(struct fr_slot *slot)
{
	u32 i;

	for (i = 0; i < slot->hold_count; i++)
		slot->holds[i]->stuck = true;
}

/* Once its registration is gone, the card reaches none of its pages. */
static void fr_end_slot(struct fr_slot *slot)
{
	if (slot->mr && WARN_ON(ib_dereg_mr(slot->mr)))
		fr_keep_pages(slot);
	slot->mr = NULL;
	slot->state = FR_FREE;
	fr_drop_holds(slot);
}

void fr_break_region(struct fr_region *region)
{
	int i;

	for (i = 0; i < RNICD_FR_SLOTS; i++)
		fr_end_slot(&region->slots[i]);
}

/* Without memory for another registration the region breaks. */
void fr_renew_slot(struct fr_domain *domain, struct fr_region *region, struct fr_slot *slot)
{
	struct ib_mr *mr;

	fr_end_slot(slot);
	mr = ib_alloc_mr(domain->pd, IB_MR_TYPE_MEM_REG, region->pages);
	if (IS_ERR(mr))
		fr_break_region(region);
	else
		slot->mr = mr;
}

static void fr_free_region(struct fr_domain *domain, struct fr_region *region)
{
	fr_break_region(region);
	atomic_long_dec(&domain->user->regions);
	kfree(region);
}

static int fr_alloc_mrs(struct fr_domain *domain, struct fr_region *region)
{
	struct ib_mr *mr;
	int i;

	for (i = 0; i < RNICD_FR_SLOTS; i++) {
		mr = ib_alloc_mr(domain->pd, IB_MR_TYPE_MEM_REG, region->pages);
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		region->slots[i].mr = mr;
	}
	return 0;
}

/* Under the domain's lock. On failure the caller frees the region. */
static int fr_make_region(struct fr_domain *domain, struct fr_region *region,
			  struct rnicd_fr_create_region *arg)
{
	int ret, i;

	if (domain->gone)
		return -ENODEV;
	ret = fr_alloc_mrs(domain, region);
	if (ret)
		return ret;
	ret = xa_alloc(&domain->regions, &region->id, region, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	arg->region = region->id;
	for (i = 0; i < RNICD_FR_SLOTS; i++)
		arg->keys[i] = region->slots[i].mr->rkey & ~0xffU;
	return 0;
}

int fr_create_region(struct fr_domain *domain, struct rnicd_fr_create_region *arg)
{
	struct fr_region *region;
	int ret;

	if (!arg->pages || arg->pages > domain->region_pages_max)
		return -EINVAL;
	ret = fr_charge(&domain->user->regions, 1, fr_regions_max());
	if (ret)
		return ret;
	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region) {
		atomic_long_dec(&domain->user->regions);
		return -ENOMEM;
	}
	region->pages = arg->pages;
	mutex_lock(&domain->lock);
	ret = fr_make_region(domain, region, arg);
	if (ret)
		fr_free_region(domain, region);
	mutex_unlock(&domain->lock);
	return ret;
}

int fr_destroy_region(struct fr_domain *domain, u32 id)
{
	struct fr_region *region;
	int ret = -ENOENT;

	mutex_lock(&domain->lock);
	if (domain->gone) {
		ret = -ENODEV;
	} else {
		region = xa_erase(&domain->regions, id);
		if (region) {
			fr_free_region(domain, region);
			ret = 0;
		}
	}
	mutex_unlock(&domain->lock);
	return ret;
}

void fr_destroy_all_regions(struct fr_domain *domain)
{
	struct fr_region *region;
	unsigned long id;

	xa_for_each(&domain->regions, id, region)
		fr_free_region(domain, region);
	xa_destroy(&domain->regions);
}
