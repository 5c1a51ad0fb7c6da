// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Pages that are pinned and mapped for the card once, for many registrations.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

/* Between chunks a killed process leaves, and others run. */
#define FR_PIN_CHUNK 4096U

static int fr_pin(struct fr_mapping *mapping, unsigned long address, u32 count)
{
	int got;

	while (mapping->count < count) {
		if (fatal_signal_pending(current))
			return -EINTR;
		got = pin_user_pages_fast(address + (unsigned long)mapping->count * PAGE_SIZE,
					  min(count - mapping->count, FR_PIN_CHUNK),
					  FOLL_WRITE | FOLL_LONGTERM,
					  mapping->pages + mapping->count);
		if (got <= 0)
			return got ? got : -EFAULT;
		mapping->count += got;
		cond_resched();
	}
	return 0;
}

/* The kernel's accounting of pinned pages, as registrations of user space do it. */
static int fr_charge_mm(struct fr_mapping *mapping, u32 count)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if ((unsigned long)atomic64_add_return(count, &current->mm->pinned_vm) > limit &&
	    !capable(CAP_IPC_LOCK)) {
		atomic64_sub(count, &current->mm->pinned_vm);
		return -ENOMEM;
	}
	mapping->mm = current->mm;
	mmgrab(mapping->mm);
	return 0;
}

/* "mapped" pages are mapped for the card, "charged" ones are charged. */
static void fr_free_mapping(struct fr_domain *domain, struct fr_mapping *mapping, u32 mapped,
			    u32 charged)
{
	u32 i;

	/* Better lost than reached by a card after others have got them. */
	if (!mapping->stuck) {
		for (i = 0; i < mapped; i++) {
			ib_dma_unmap_page(domain->pd->device, mapping->dma[i], PAGE_SIZE,
					  DMA_BIDIRECTIONAL);
			if (!(i % FR_PIN_CHUNK))
				cond_resched();
		}
		unpin_user_pages_dirty_lock(mapping->pages, mapping->count, true);
	}
	if (mapping->mm) {
		atomic64_sub(charged, &mapping->mm->pinned_vm);
		mmdrop(mapping->mm);
	}
	atomic_long_sub(charged, &domain->user->pages);
	kvfree(mapping->pages);
	kvfree(mapping->dma);
	kfree(mapping);
}

static struct fr_mapping *fr_new_mapping(u32 count)
{
	struct fr_mapping *mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);

	if (!mapping)
		return NULL;
	mapping->pages = kvmalloc_array(count, sizeof(*mapping->pages), GFP_KERNEL_ACCOUNT);
	mapping->dma = kvmalloc_array(count, sizeof(*mapping->dma), GFP_KERNEL_ACCOUNT);
	if (mapping->pages && mapping->dma)
		return mapping;
	kvfree(mapping->pages);
	kvfree(mapping->dma);
	kfree(mapping);
	return NULL;
}

/* Under the domain's lock; returns the number of pages that are mapped. */
static u32 fr_dma_map(struct fr_domain *domain, struct fr_mapping *mapping)
{
	struct ib_device *ibdev = domain->pd->device;
	u32 i;

	for (i = 0; i < mapping->count; i++) {
		mapping->dma[i] = ib_dma_map_page(ibdev, mapping->pages[i], 0, PAGE_SIZE,
						  DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(ibdev, mapping->dma[i]))
			break;
		if (!(i % FR_PIN_CHUNK))
			cond_resched();
	}
	return i;
}

/* On failure the mapping is freed. */
static int fr_insert(struct fr_domain *domain, struct fr_mapping *mapping, u32 *id)
{
	u32 mapped = 0, count = mapping->count;
	int ret = -ENODEV;

	mutex_lock(&domain->lock);
	if (domain->gone)
		goto fail;
	mapped = fr_dma_map(domain, mapping);
	if (mapped < count) {
		ret = -ENOMEM;
		goto fail;
	}
	ret = xa_alloc(&domain->mappings, id, mapping, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto fail;
	mutex_unlock(&domain->lock);
	return 0;
fail:
	fr_free_mapping(domain, mapping, mapped, count);
	mutex_unlock(&domain->lock);
	return ret;
}

static int fr_pin_and_insert(struct fr_domain *domain, const struct rnicd_fr_map *arg, u32 *id)
{
	u32 count = arg->length >> PAGE_SHIFT;
	struct fr_mapping *mapping = fr_new_mapping(count);
	int ret;

	if (!mapping) {
		atomic_long_sub(count, &domain->user->pages);
		return -ENOMEM;
	}
	ret = fr_charge_mm(mapping, count);
	/* Without the lock: a page fault may take as long as it likes. */
	if (!ret)
		ret = fr_pin(mapping, arg->address, count);
	if (ret) {
		fr_free_mapping(domain, mapping, 0, count);
		return ret;
	}
	/* From here on another thread may unmap it. */
	return fr_insert(domain, mapping, id);
}

int fr_map(struct fr_domain *domain, struct rnicd_fr_map __user *user)
{
	struct rnicd_fr_unmap unmap = {};
	struct rnicd_fr_map arg;
	int ret;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved || !arg.length || (arg.address | arg.length) & ~PAGE_MASK ||
	    arg.length >> PAGE_SHIFT > RNICD_FR_MAPPING_PAGES_MAX ||
	    arg.address > ULONG_MAX - arg.length)
		return -EINVAL;
	ret = fr_charge(&domain->user->pages, arg.length >> PAGE_SHIFT, fr_pages_max());
	if (ret)
		return ret;
	ret = fr_pin_and_insert(domain, &arg, &arg.mapping);
	if (ret)
		return ret;
	if (copy_to_user(user, &arg, sizeof(arg))) {
		unmap.mapping = arg.mapping;
		fr_unmap(domain, &unmap);
		return -EFAULT;
	}
	return 0;
}

int fr_unmap(struct fr_domain *domain, const struct rnicd_fr_unmap *arg)
{
	struct fr_mapping *mapping;
	int ret = 0;

	if (arg->reserved)
		return -EINVAL;
	mutex_lock(&domain->lock);
	mapping = xa_load(&domain->mappings, arg->mapping);
	if (domain->gone) {
		ret = -ENODEV;
	} else if (!mapping) {
		ret = -ENOENT;
	} else if (mapping->uses) {
		ret = -EBUSY;
	} else {
		xa_erase(&domain->mappings, arg->mapping);
		fr_free_mapping(domain, mapping, mapping->count, mapping->count);
	}
	mutex_unlock(&domain->lock);
	return ret;
}

void fr_unmap_all(struct fr_domain *domain)
{
	struct fr_mapping *mapping;
	unsigned long id;

	xa_for_each(&domain->mappings, id, mapping)
		fr_free_mapping(domain, mapping, mapping->count, mapping->count);
	xa_destroy(&domain->mappings);
}
