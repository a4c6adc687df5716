/* Finding out when memory is to be read. */
#ifndef LEVELING_H
#define LEVELING_H

/* After the memory was started: 1 if it gives back what is written to it. */
int level_memory(void);

#endif
