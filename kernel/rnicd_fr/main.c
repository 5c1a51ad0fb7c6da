// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The module: its limits, the cards, and control files.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

static unsigned int domains_max = 4096;
module_param(domains_max, uint, 0444);
MODULE_PARM_DESC(domains_max, "Protection domains of one opening of the device");
static unsigned int regions_max = 65536;
module_param(regions_max, uint, 0444);
MODULE_PARM_DESC(regions_max, "Fast regions of one opening of the device");
static unsigned long pages_max = 1UL << 24;
module_param(pages_max, ulong, 0444);
MODULE_PARM_DESC(pages_max, "Mapped pages of one opening of the device");
static bool dma_key;
module_param(dma_key, bool, 0444);
MODULE_PARM_DESC(dma_key, "Give domains a key to all memory; mlx5 needs it for more than 8 pages");

bool fr_dma_key(void)
{
	return dma_key;
}

unsigned long fr_domains_max(void)
{
	return domains_max;
}

unsigned long fr_regions_max(void)
{
	return regions_max;
}

unsigned long fr_pages_max(void)
{
	return pages_max;
}

int fr_charge(atomic_long_t *used, long amount, unsigned long limit)
{
	if ((unsigned long)atomic_long_add_return(amount, used) <= limit)
		return 0;
	atomic_long_sub(amount, used);
	return -EDQUOT;
}

/* --- Cards --- */

static DEFINE_MUTEX(fr_devices_lock);
static LIST_HEAD(fr_devices);

static void fr_device_free(struct kref *ref)
{
	kfree(container_of(ref, struct fr_device, ref));
}

void fr_device_put(struct fr_device *device)
{
	kref_put(&device->ref, fr_device_free);
}

struct fr_device *fr_device_get(u32 index)
{
	struct fr_device *device, *found = NULL;

	mutex_lock(&fr_devices_lock);
	list_for_each_entry(device, &fr_devices, entry) {
		if (device->ibdev->index == index) {
			kref_get(&device->ref);
			found = device;
			break;
		}
	}
	mutex_unlock(&fr_devices_lock);
	return found;
}

static int fr_add_device(struct ib_device *ibdev)
{
	struct fr_device *device = kzalloc(sizeof(*device), GFP_KERNEL);

	if (!device)
		return -ENOMEM;
	kref_init(&device->ref);
	mutex_init(&device->lock);
	INIT_LIST_HEAD(&device->domains);
	device->ibdev = ibdev;
	mutex_lock(&fr_devices_lock);
	list_add(&device->entry, &fr_devices);
	mutex_unlock(&fr_devices_lock);
	return 0;
}

/*
 * Domain files stay open and answer ENODEV. Clients go in reverse order of
 * their registration, so this runs before ib_uverbs frees the domains.
 */
static void fr_remove_device(struct ib_device *ibdev, void *client_data)
{
	struct fr_device *device, *found = NULL;
	struct fr_domain *domain;

	mutex_lock(&fr_devices_lock);
	list_for_each_entry(device, &fr_devices, entry) {
		if (device->ibdev == ibdev) {
			list_del(&device->entry);
			found = device;
			break;
		}
	}
	mutex_unlock(&fr_devices_lock);
	if (!found)
		return;
	mutex_lock(&found->lock);
	found->removed = true;
	list_for_each_entry(domain, &found->domains, entry)
		fr_domain_teardown(domain);
	mutex_unlock(&found->lock);
	fr_device_put(found);
}

static struct ib_client fr_client = {
	.name = KBUILD_MODNAME,
	.add = fr_add_device,
	.remove = fr_remove_device,
};

/* --- Control files --- */

static void fr_user_free(struct kref *ref)
{
	struct fr_user *user = container_of(ref, struct fr_user, ref);

	put_pid(user->owner);
	kfree(user);
}

void fr_user_put(struct fr_user *user)
{
	kref_put(&user->ref, fr_user_free);
}

/* A descriptor that was inherited or passed on gives nothing. */
bool fr_called_by_owner(const struct fr_user *user)
{
	return task_tgid(current) == user->owner;
}

static int fr_open(struct inode *inode, struct file *file)
{
	struct fr_user *user;

	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return -ENOMEM;
	kref_init(&user->ref);
	user->owner = get_pid(task_tgid(current));
	file->private_data = user;
	return 0;
}

static int fr_release(struct inode *inode, struct file *file)
{
	fr_user_put(file->private_data);
	return 0;
}

static int fr_info(struct rnicd_fr_info __user *arg)
{
	struct rnicd_fr_info info = {
		.abi = RNICD_FR_ABI,
		.page_size = PAGE_SIZE,
		.domains_max = domains_max,
		.regions_max = regions_max,
		.pages_max = pages_max,
	};

	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static long fr_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct fr_user *user = file->private_data;

	if (!fr_called_by_owner(user))
		return -EPERM;
	switch (command) {
	case RNICD_FR_INFO:
		return fr_info((void __user *)arg);
	case RNICD_FR_TAKE:
		return fr_take(user, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations fr_fops = {
	.owner = THIS_MODULE,
	.open = fr_open,
	.release = fr_release,
	.unlocked_ioctl = fr_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice fr_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rnicd_fr",
	.fops = &fr_fops,
	.mode = 0600,
};

static int __init fr_init(void)
{
	int ret = ib_register_client(&fr_client);

	if (ret)
		return ret;
	ret = misc_register(&fr_misc);
	if (ret)
		ib_unregister_client(&fr_client);
	return ret;
}

static void __exit fr_exit(void)
{
	misc_deregister(&fr_misc);
	ib_unregister_client(&fr_client);
}

module_init(fr_init);
module_exit(fr_exit);
MODULE_AUTHOR("The rnicd authors");
MODULE_DESCRIPTION("Fast registrations by the kernel in protection domains of rnicd");
MODULE_LICENSE("Dual BSD/GPL");
