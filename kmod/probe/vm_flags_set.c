// SPDX-License-Identifier: GPL-2.0
/* 6.3 made vm_flags const and gave it accessors. */
#include <linux/mm.h>

void hawk_probe(struct vm_area_struct *vma);
void hawk_probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTCOPY);
	vm_flags_clear(vma, VM_MAYWRITE);
}
