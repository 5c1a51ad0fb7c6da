// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RNICD_FR_SUBMIT: a chain of registrations and invalidations.
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

/* The request, copied before the lock is taken. */
struct fr_chain {
	struct rnicd_fr_submit arg;
	struct rnicd_fr_op *ops;
	struct rnicd_fr_run *runs;
};

static int fr_find_slot(struct fr_domain *domain, const struct rnicd_fr_op *op,
			struct fr_work *work)
{
	if (op->slot >= RNICD_FR_SLOTS || op->key > 0xff)
		return -EINVAL;
	work->region = xa_load(&domain->regions, op->region);
	if (!work->region)
		return -ENOENT;
	work->slot = &work->region->slots[op->slot];
	return work->slot->mr ? 0 : -EIO;
}

static int fr_check_range(const struct fr_region *region, const struct rnicd_fr_op *op,
			  const struct fr_chain *chain)
{
	u32 last_run;
	u64 end;

	if (op->access & ~(RNICD_FR_LOCAL_WRITE | RNICD_FR_REMOTE_READ | RNICD_FR_REMOTE_WRITE))
		return -EINVAL;
	if (op->access & RNICD_FR_REMOTE_WRITE && !(op->access & RNICD_FR_LOCAL_WRITE))
		return -EINVAL;
	if (!op->length || op->length > (u64)region->pages * PAGE_SIZE ||
	    op->offset >= PAGE_SIZE || (op->base & ~PAGE_MASK) != op->offset ||
	    check_add_overflow(op->base, op->length - 1, &end))
		return -EINVAL;
	if (!op->run_count || op->run_count > region->pages ||
	    check_add_overflow(op->first_run, op->run_count, &last_run) ||
	    last_run > chain->arg.run_count)
		return -EINVAL;
	return 0;
}

/* The mapping is held while the slot has the registration. */
static struct fr_mapping *fr_hold(struct fr_domain *domain, struct fr_slot *slot, u32 id)
{
	struct fr_mapping *mapping = xa_load(&domain->mappings, id);

	if (mapping) {
		mapping->uses++;
		slot->holds[slot->hold_count++] = mapping;
	}
	return mapping;
}

/* The pages of a run go behind the first at entries of the list. */
static int fr_add_run(struct fr_domain *domain, const struct rnicd_fr_run *run,
		      const struct fr_mapping *mapping, u32 *at, u32 pages)
{
	struct scatterlist *sg = domain->sg + *at;
	u32 i;

	if (run->reserved || !run->count || run->count > pages - *at ||
	    run->page >= mapping->count || run->count > mapping->count - run->page)
		return -EINVAL;
	for (i = 0; i < run->count; i++, sg++) {
		sg_dma_address(sg) = mapping->dma[run->page + i];
		sg_dma_len(sg) = PAGE_SIZE;
	}
	*at += run->count;
	return 0;
}

/* Fills the page list, holds its mappings. On failure the caller drops the holds. */
static int fr_collect(struct fr_domain *domain, const struct rnicd_fr_op *op,
		      const struct fr_chain *chain, struct fr_slot *slot, u32 pages)
{
	const struct rnicd_fr_run *run, *first = chain->runs + op->first_run;
	const struct fr_mapping *mapping = NULL;
	u32 rest, at = 0;
	int ret;

	slot->holds = kvmalloc_array(op->run_count, sizeof(*slot->holds), GFP_KERNEL_ACCOUNT);
	if (!slot->holds)
		return -ENOMEM;
	for (run = first; run < first + op->run_count; run++) {
		if (run == first || run->mapping != run[-1].mapping)
			mapping = fr_hold(domain, slot, run->mapping);
		if (!mapping)
			return -ENOENT;
		ret = fr_add_run(domain, run, mapping, &at, pages);
		if (ret)
			return ret;
	}
	if (at != pages)
		return -EINVAL;
	/* The last page ends with the last byte. */
	rest = (u64)pages * PAGE_SIZE - op->offset - op->length;
	sg_dma_len(&domain->sg[pages - 1]) -= rest;
	return 0;
}

static int fr_access(u32 access)
{
	return (access & RNICD_FR_LOCAL_WRITE ? IB_ACCESS_LOCAL_WRITE : 0) |
	       (access & RNICD_FR_REMOTE_READ ? IB_ACCESS_REMOTE_READ : 0) |
	       (access & RNICD_FR_REMOTE_WRITE ? IB_ACCESS_REMOTE_WRITE : 0);
}

static int fr_map_pages(struct fr_domain *domain, const struct rnicd_fr_op *op,
			const struct fr_chain *chain, struct fr_work *work)
{
	u32 pages = (op->offset + op->length + PAGE_SIZE - 1) >> PAGE_SHIFT;
	struct fr_slot *slot = work->slot;
	unsigned int offset = op->offset;
	int ret;

	if (pages > work->region->pages)
		return -EINVAL;
	ret = fr_collect(domain, op, chain, slot, pages);
	if (!ret) {
		ret = ib_map_mr_sg(slot->mr, domain->sg, pages, &offset, PAGE_SIZE);
		/* A card that takes fewer maps those, and says so. */
		if (ret >= 0)
			ret = ret == pages && slot->mr->length == op->length ? 0 : -EINVAL;
	}
	if (ret)
		fr_drop_holds(slot);
	return ret;
}

static int fr_prepare_register(struct fr_domain *domain, const struct rnicd_fr_op *op,
			       const struct fr_chain *chain, struct fr_work *work)
{
	struct fr_slot *slot = work->slot;
	int ret;

	if (slot->state != FR_FREE)
		return -EBUSY;
	ret = fr_check_range(work->region, op, chain);
	if (!ret)
		ret = fr_map_pages(domain, op, chain, work);
	if (ret)
		return ret;
	ib_update_fast_reg_key(slot->mr, op->key);
	slot->mr->iova = op->base;
	work->wr.wr.opcode = IB_WR_REG_MR;
	work->wr.mr = slot->mr;
	work->wr.key = slot->mr->rkey;
	work->wr.access = fr_access(op->access);
	slot->state = FR_LIVE;
	return 0;
}

static int fr_prepare_invalidate(const struct rnicd_fr_op *op, struct fr_work *work)
{
	struct fr_slot *slot = work->slot;

	if (op->base || op->length || op->offset || op->access || op->first_run || op->run_count)
		return -EINVAL;
	if (slot->state != FR_LIVE)
		return -ENOENT;
	if ((slot->mr->rkey & 0xff) != op->key)
		return -EINVAL;
	work->wr.wr.opcode = IB_WR_LOCAL_INV;
	work->wr.wr.ex.invalidate_rkey = slot->mr->rkey;
	slot->state = FR_DYING;
	return 0;
}

static int fr_prepare(struct fr_domain *domain, const struct rnicd_fr_op *op,
		      const struct fr_chain *chain, struct fr_work *work)
{
	int ret;

	memset(work, 0, sizeof(*work));
	ret = fr_find_slot(domain, op, work);
	if (ret)
		return ret;
	switch (op->kind) {
	case RNICD_FR_REGISTER:
		return fr_prepare_register(domain, op, chain, work);
	case RNICD_FR_INVALIDATE:
		return fr_prepare_invalidate(op, work);
	default:
		return -EINVAL;
	}
}

static int fr_settle_success(const struct rnicd_fr_op *op, struct fr_work *work)
{
	if (op->kind == RNICD_FR_INVALIDATE) {
		work->slot->state = FR_FREE;
		fr_drop_holds(work->slot);
	}
	return 0;
}

/* Nobody knows whether it was executed; afterwards nothing is in force. */
static int fr_settle_flushed(struct fr_domain *domain, const struct rnicd_fr_op *op,
			     struct fr_work *work)
{
	if (work->slot->state != FR_FREE)
		fr_renew_slot(domain, work->region, work->slot);
	if (!work->slot->mr)
		return -EIO;
	return op->kind == RNICD_FR_INVALIDATE ? 0 : -ECANCELED;
}

/*
 * Requests before the first report succeeded. That one failed by itself, unless
 * it was flushed; all behind it were flushed.
 */
static void fr_settle(struct fr_domain *domain, struct fr_chain *chain, u32 count, int outcome)
{
	bool failed = outcome == -EPROTO;
	struct rnicd_fr_op *op;
	struct fr_work *work;
	u32 i;

	for (i = 0; i < count; i++) {
		work = &domain->work[i];
		op = &chain->ops[i];
		if (!failed && outcome && work->reported && work->status != IB_WC_SUCCESS) {
			failed = true;
			if (work->status != IB_WC_WR_FLUSH_ERR)
				fr_break_region(work->region);
		}
		op->result = failed ? fr_settle_flushed(domain, op, work) :
				      fr_settle_success(op, work);
		chain->arg.done += !op->result;
	}
}

static u32 fr_slot_key(struct fr_domain *domain, const struct rnicd_fr_op *op)
{
	const struct fr_region *region = xa_load(&domain->regions, op->region);

	if (!region || op->slot >= RNICD_FR_SLOTS || !region->slots[op->slot].mr)
		return 0;
	return region->slots[op->slot].mr->rkey & ~0xffU;
}

static int fr_execute(struct fr_domain *domain, struct fr_chain *chain)
{
	u32 count, i;
	int ret = fr_queue_ready(&domain->queue);

	if (ret)
		return ret;
	for (i = 0; i < chain->arg.op_count; i++)
		chain->ops[i].result = -ECANCELED;
	for (count = 0; count < chain->arg.op_count; count++) {
		ret = fr_prepare(domain, &chain->ops[count], chain, &domain->work[count]);
		if (ret) {
			chain->ops[count].result = ret;
			break;
		}
	}
	if (count)
		fr_settle(domain, chain, count, fr_queue_execute(domain, count));
	for (i = 0; i < chain->arg.op_count; i++)
		chain->ops[i].slot_key = fr_slot_key(domain, &chain->ops[i]);
	return 0;
}

static int fr_copy_runs(struct fr_chain *chain)
{
	if (!chain->arg.run_count)
		return 0;
	chain->runs = vmemdup_user(u64_to_user_ptr(chain->arg.runs),
				   array_size(chain->arg.run_count, sizeof(*chain->runs)));
	return PTR_ERR_OR_ZERO(chain->runs);
}

static int fr_copy_chain(struct fr_domain *domain, struct fr_chain *chain)
{
	struct rnicd_fr_submit *arg = &chain->arg;

	arg->done = 0;
	if (arg->reserved || !arg->op_count || arg->op_count > RNICD_FR_OPS_MAX ||
	    arg->run_count > arg->op_count * domain->region_pages_max)
		return -EINVAL;
	chain->ops = memdup_user(u64_to_user_ptr(arg->ops), arg->op_count * sizeof(*chain->ops));
	if (IS_ERR(chain->ops))
		return PTR_ERR(chain->ops);
	return fr_copy_runs(chain);
}

static int fr_report(const struct fr_chain *chain, struct rnicd_fr_submit __user *to)
{
	if (copy_to_user(u64_to_user_ptr(chain->arg.ops), chain->ops,
			 chain->arg.op_count * sizeof(*chain->ops)) ||
	    copy_to_user(to, &chain->arg, sizeof(chain->arg)))
		return -EFAULT;
	return 0;
}

int fr_submit(struct fr_domain *domain, struct rnicd_fr_submit __user *user)
{
	struct fr_chain chain = {};
	int ret;

	if (copy_from_user(&chain.arg, user, sizeof(chain.arg)))
		return -EFAULT;
	ret = fr_copy_chain(domain, &chain);
	if (!ret) {
		mutex_lock(&domain->lock);
		ret = domain->gone ? -ENODEV : fr_execute(domain, &chain);
		mutex_unlock(&domain->lock);
	}
	if (!ret)
		ret = fr_report(&chain, user);
	if (!IS_ERR(chain.runs))
		kvfree(chain.runs);
	if (!IS_ERR(chain.ops))
		kfree(chain.ops);
	return ret;
}
